from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.bench.suite import request, write_recording, write_suite

Run = Callable[..., Any]


def test_recorded_answers_are_scored_and_written(run: Run, tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    write_recording(suite / "mercury" / "02-quiet.ndjson", (request("def f(x):\n    return x<|cursor|>"), "None"))
    result = run("bench", "edits", str(suite), "--peer", "mercury", "--json", str(tmp_path / "out.json"))
    assert result.status == 0
    assert "# bench edits mercury" in result.out
    written = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert (written["quiet_rate"], written["score"]) == (1.0, None)
    assert written["right"] == ["02-quiet@L2"]


@pytest.mark.parametrize("words", [("--peer", "somebody"), ("--kind", "both")])
def test_what_is_not_known_is_refused(run: Run, tmp_path: Path, words: tuple[str, str]) -> None:
    result = run("bench", "edits", str(write_suite(tmp_path)), *words)
    assert result.status == 2
    assert words[1] in result.err


def test_a_folder_without_scenarios_is_refused(run: Run, tmp_path: Path) -> None:
    result = run("bench", "edits", str(tmp_path))
    assert result.status == 1
    assert "has no *.txtar file" in result.err
