from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calomel.bench.curve.asked import Stroke, Typing
from calomel.bench.curve.run import CurveOptions, measure_curve, run_curve
from calomel.bench.curve.typist import Moment, long_file, moments
from calomel.bench.heldout import read_heldout
from calomel.bench.progress import Progress

TEXT = "\n".join(f"    value_{number} = compute({number})" for number in range(1000))


def stroke(moment: Moment, size: int) -> Stroke:
    """Takes twice as long behind twice the context, all of it in the network."""
    forward = size / 1024
    return Stroke(moment.kind, 10 + forward, 12.0, 1.0, 2.0, 3.0, 3.0 + forward, forward, size, 19, 51, 2)


def measured(options: CurveOptions, **more: Any) -> dict[str, Any]:
    return dict(measure_curve(replace(options, command="test"), TEXT, stroke, Progress(), **more).flat)


def test_the_curve_has_a_point_for_each_context_and_says_what_grows() -> None:
    flat = measured(CurveOptions(contexts=(2048, 8192), lines=2))

    assert (flat["2k.wall_p50_ms"], flat["8k.wall_p50_ms"], flat["8k.host_p50_ms"]) == (12.0, 18.0, 1.0)
    assert (flat["growth_wall"], flat["growth_without_forward"], flat["growth_forward_share"]) == (1.5, 1.0, 1.0)
    assert (flat["computed_max"], flat["2k.computed_share_within"], flat["left_out"]) == (19, 1.0, None)


def test_letters_deletions_and_new_lines_are_keystrokes_and_jumps_are_not() -> None:
    flat = measured(CurveOptions(contexts=(2048,), lines=3))

    assert flat["2k.n"] == 3 * (8 + 2 + 1)
    assert flat["2k.jump_computed_max"] == flat["2k.way_back_computed_max"] == 19


def test_a_quick_run_leaves_out_what_it_has_no_time_for_and_says_so() -> None:
    times = iter([0.0, 10.0, 100.0])

    report = measure_curve(
        CurveOptions(quick=True, contexts=(2048, 4096, 32768), command="test"),
        TEXT,
        stroke,
        Progress(),
        clock=lambda: next(times),
    )

    assert report.flat["left_out"] == "32k"
    assert report.notes[-1] == "Left out for lack of time: 32k."
    assert "| 4k | 4096 | 19 / 19 | 51 |" in report.to_markdown()


def test_a_keystroke_computes_as_few_tokens_behind_a_long_context_as_behind_a_short_one() -> None:
    files = read_heldout()
    file = long_file(files)
    typing = Typing(files, file, (512, 1536), None, "cpu")
    try:
        first, *others = (moment for moment in moments(file.text, 1, 0))
        cold = {size: typing.ask(first, size) for size in (512, 1536)}
        warm = {size: [typing.ask(moment, size) for moment in others] for size in (512, 1536)}
    finally:
        typing.close()

    assert cold[512].prompt_tokens * 2 < cold[1536].prompt_tokens
    assert all(each.computed > 0.9 * each.prompt_tokens for each in cold.values())
    assert [each.computed for each in warm[512]] == [each.computed for each in warm[1536]]
    assert max(each.computed for each in warm[1536]) <= 64
    assert all(each.forward <= each.prefill + each.denoise <= each.wall for each in warm[1536])


@pytest.mark.slow
def test_the_bench_writes_its_page(tmp_path: Path) -> None:
    run_curve(CurveOptions(contexts=(512, 1024), lines=2, quick=True, command="test", results=tmp_path))

    assert "A keystroke by size of context" in (tmp_path / "bench-curve-quick.md").read_text(encoding="utf-8")
    assert (tmp_path / "bench-curve-quick.json").is_file()
