from __future__ import annotations

import json
from pathlib import Path

import pytest

from calomel.bench.speculation import SpeculationOptions, run_speculation


@pytest.mark.slow
def test_both_ways_answer_alike_and_guessing_takes_no_more_forwards(
    checkpoint: Path, heldout: Path, tmp_path: Path
) -> None:
    log = tmp_path / "typing.json"
    typed = "def area(width, height):\n    return width * height\n"
    log.write_text(
        json.dumps(
            {
                "startContent": "",
                "endContent": typed,
                "txns": [{"patches": [[at, 0, letter]], "time": _time(at)} for at, letter in enumerate(typed)],
            }
        ),
        encoding="utf-8",
    )
    options = SpeculationOptions(
        logs=(log,),
        model=checkpoint,
        threads=1,
        heldout=heldout,
        holes_per_kind=4,
        quick=True,
        cache=tmp_path,
        results=tmp_path,
        command="calomel bench speculation",
    )
    flat = run_speculation(options).flat

    assert flat["holes"] == 20
    assert flat["holes_same_text"] == 20
    assert flat["holes_exact_match_with"] == flat["holes_exact_match_without"]
    assert flat["holes_forwards_with"] <= flat["holes_forwards_without"]  # type: ignore[operator]
    assert flat["same_outcomes"] == 1.0
    assert flat["opportunities_with"] == flat["opportunities_without"]
    assert 0 < flat["steps_with"] <= flat["steps_without"]  # type: ignore[operator]
    written = json.loads((tmp_path / "bench-speculation.json").read_text(encoding="utf-8"))
    assert written["steps_with"] == flat["steps_with"]
    page = (tmp_path / "bench-speculation.md").read_text(encoding="utf-8")
    assert "steps per accepted token" in page


def _time(at: int) -> str:
    return f"2026-01-01T00:{at // 60:02d}:{at % 60:02d}.000Z"
