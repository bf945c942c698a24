from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from calomel.bench.answer import Contender, Oracle, matches
from calomel.bench.heldout import BenchDataError
from calomel.bench.humaneval import FILES, RANDOM_SPAN, SINGLE_LINE, data_folder, read_tasks
from calomel.bench.sandbox import run_program

ENTRY = {
    "task_id": "Sum/0",
    "entry_point": "add",
    "prompt": "def add(a, b):\n",
    "suffix": "    return total\n",
    "canonical_solution": "    total = a + b\n",
    "test": "def check(candidate):\n    assert candidate(2, 3) == 5\n",
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "human-eval-infilling"
    folder.mkdir()
    for name in FILES.values():
        with gzip.open(folder / name, "wt") as file:
            for number in range(6):
                file.write(json.dumps({**ENTRY, "task_id": f"Sum/{number}"}) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("completion", "passed"),
    [("    total = a + b\n", True), ("    total = b + a\n", True), ("    total = a * b\n", False), ("", False)],
)
def test_a_completion_passes_when_its_program_passes_the_test(data: Path, completion: str, *, passed: bool) -> None:
    task = read_tasks(data, seed=1)[0]
    assert run_program(task.program(completion)).passed is passed


def test_a_seeded_subset_of_each_file(data: Path) -> None:
    tasks = read_tasks(data, seed=1, single_line=3, random_span=2)
    assert [task.hole.row for task in tasks] == [SINGLE_LINE] * 3 + [RANDOM_SPAN] * 2
    assert tasks == read_tasks(data, seed=1, single_line=3, random_span=2)
    assert tasks != read_tasks(data, seed=2, single_line=3, random_span=2)


def test_absent_files_are_named_with_the_variable_to_set(tmp_path: Path) -> None:
    with pytest.raises(BenchDataError, match="CALOMEL_DATA"):
        read_tasks(tmp_path, seed=1)


def test_calomel_data_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_DATA", "/somewhere")
    assert data_folder() == Path("/somewhere")
    monkeypatch.delenv("CALOMEL_DATA")
    assert data_folder() == Path("../shared/data")


def test_canonical_solutions_of_the_public_tasks_pass() -> None:
    try:
        tasks = read_tasks(data_folder(), seed=1, single_line=12, random_span=12)
    except BenchDataError as error:
        pytest.skip(str(error))
    for task in tasks:
        answer = Oracle().attempt(task.hole, Contender("oracle")).text
        assert matches(task.hole, answer)
        assert run_program(task.program(answer)).passed, task.hole.key
