from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.selectivity.made import TRUTH, drawn, sample

from calomel.report import stats
from calomel.selectivity.calibrator import CALIBRATOR_FILE, Calibrator


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(stats, "ROUNDS_OF_STATISTICS", 20)
    Calibrator({"fill": TRUTH}).write(tmp_path / "model" / CALIBRATOR_FILE)
    return tmp_path / "model"


def test_samples_of_several_files_are_judged_apart(run: Callable[..., Run], model: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text("".join(each.to_line() for each in drawn(12)))
    done = run(
        "bench", "selectivity", tmp_path / "one.jsonl", tmp_path / "two.jsonl",
        "--model", model, "--json", tmp_path / "r.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert done.out.startswith("# bench selectivity")
    assert "two: thresholds against everything" in done.out
    flat = json.loads((tmp_path / "r.json").read_text())
    assert flat["one.questions"] == flat["two.questions"] == 12


def test_what_cannot_be_used_is_said_in_a_sentence(run: Callable[..., Run], model: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_text(sample().to_line() + "{\n")
    for path, words in ((torn, "torn.jsonl, line 2"), (tmp_path / "none.jsonl", "none.jsonl: No such file")):
        done = run("bench", "selectivity", path, "--model", model)
        assert done.status == 2
        assert words in done.err
    (model / CALIBRATOR_FILE).write_text("{}")
    done = run("bench", "selectivity", torn, "--model", model)
    assert done.status == 2
    assert CALIBRATOR_FILE in done.err
