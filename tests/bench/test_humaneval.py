from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from calomel.report.heldout import FILES, RANDOM_SPAN, SINGLE_LINE, BenchDataError, data_folder, read_humaneval

ENTRY = {
    "task_id": "Sum/0",
    "prompt": "def add(a, b):\n",
    "suffix": "    return total\n",
    "canonical_solution": "    total = a + b\n",
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


def test_a_seeded_subset_of_each_file(data: Path) -> None:
    lines = read_humaneval(SINGLE_LINE, data, seed=1, limit=3)
    assert [(hole.row, hole.answer, hole.first_line_only) for hole in lines] == [
        (SINGLE_LINE, "    total = a + b\n", True)
    ] * 3
    assert not read_humaneval(RANDOM_SPAN, data, seed=1)[0].first_line_only
    assert lines == read_humaneval(SINGLE_LINE, data, seed=1, limit=3)
    assert lines != read_humaneval(SINGLE_LINE, data, seed=2, limit=3)


def test_absent_files_are_named_with_the_variable_to_set(tmp_path: Path) -> None:
    with pytest.raises(BenchDataError, match="CALOMEL_DATA"):
        read_humaneval(SINGLE_LINE, tmp_path, seed=1)


def test_calomel_data_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_DATA", "/somewhere")
    assert data_folder() == Path("/somewhere")
    monkeypatch.delenv("CALOMEL_DATA")
    assert data_folder() == Path("../shared/data")
