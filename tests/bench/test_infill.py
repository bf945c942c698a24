from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.bench.measure import count

from calomel.bench.holes import KINDS, REST_OF_LINE
from calomel.bench.infill import InfillOptions, collect, measure_infill
from calomel.bench.model import BASELINE, LEFT_TO_RIGHT, Attempt, Contender
from calomel.report.heldout import Hole
from calomel.report.running import Journal, Progress


@dataclass
class Scripted:
    """Right under every policy but left to right, which is wrong in Go, and slower."""

    asked: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, hole: Hole, contender: Contender) -> Attempt:
        if contender.name == "prime":
            assert hole.max_tokens == 1
            return Attempt("", 1, 1, 101.0, prefill_milliseconds=100.0)
        self.asked.append((hole.key, contender.name))
        if contender.name == LEFT_TO_RIGHT:
            return Attempt("wrong" if hole.language == "go" else hole.answer, 5, 5, 50.0)
        return Attempt(hole.answer, 6, 2, 20.0)


@pytest.fixture
def options(heldout: Path) -> InfillOptions:
    return InfillOptions(heldout=heldout, holes_per_kind=8)


def test_every_row_is_told_for_the_policy_and_left_to_right(options: InfillOptions, progress: Progress) -> None:
    report = measure_infill(options, Scripted(), count, progress, weights="w")
    for row in KINDS:
        assert report.flat[f"{row}.exact_match"] == 1.0
        assert report.flat[f"{row}.exact_match_n"] == 8
        assert report.flat[f"{row}.exact_match_left_to_right"] == 0.5
        assert report.flat[f"{row}.go.exact_match_left_to_right"] == 0.0
        assert report.flat[f"{row}.python.exact_match_left_to_right"] == 1.0


def test_the_comparison_with_left_to_right(options: InfillOptions, progress: Progress) -> None:
    flat = measure_infill(options, Scripted(), count, progress, weights="w").flat
    assert flat["tokens_per_forward"] == 3.0
    assert flat["vs_left_to_right"] == 0.4
    assert flat["vs_left_to_right_cold"] == pytest.approx(0.8)


def test_a_share_has_its_interval(options: InfillOptions, progress: Progress) -> None:
    flat = measure_infill(options, Scripted(), count, progress, weights="w").flat
    assert flat["rest_of_line.exact_match_low"] == pytest.approx(0.6756, abs=1e-4)
    assert flat["rest_of_line.exact_match_high"] == 1.0


def test_contenders_take_turns_at_being_first(options: InfillOptions, progress: Progress) -> None:
    scripted = Scripted()
    measure_infill(options, scripted, count, progress, weights="w")
    assert [name for _, name in scripted.asked[::2]] == ["default", LEFT_TO_RIGHT] * 20


def test_a_second_run_asks_nothing_again(options: InfillOptions, progress: Progress) -> None:
    first = measure_infill(options, Scripted(), count, progress, weights="w")
    again = Scripted()
    second = measure_infill(options, again, count, progress, weights="w")
    assert again.asked == []
    assert second.flat["rest_of_line.exact_match"] == first.flat["rest_of_line.exact_match"]
    assert second.flat["resumed_records"] == 40


def test_other_weights_are_asked_anew(options: InfillOptions, progress: Progress) -> None:
    measure_infill(options, Scripted(), count, progress, weights="w")
    again = Scripted()
    measure_infill(options, again, count, progress, weights="other")
    assert len(again.asked) == 80


def test_an_early_end_leaves_whole_pairs(tmp_path: Path, progress: Progress, clock: Callable[[], float]) -> None:
    holes = [Hole(f"h{number}", REST_OF_LINE, "python", None, "", "", "x") for number in range(10)]
    contenders = (Contender("default"), BASELINE)
    journal = Journal("infill", {}, folder=tmp_path)
    outcomes = collect(holes, contenders, Scripted(), journal, progress, deadline=3.5, clock=clock)
    assert [(outcome.hole.key, outcome.contender) for outcome in outcomes] == [
        (f"h{number}", name) for number in range(4) for name in ("default", LEFT_TO_RIGHT)
    ]


def test_without_a_causal_mode_left_to_right_is_left_out(options: InfillOptions, progress: Progress) -> None:
    scripted = Scripted()
    flat = measure_infill(options, scripted, count, progress, weights="w", baseline=False).flat
    assert {name for _, name in scripted.asked} == {"default"}
    assert (flat["rest_of_line.exact_match"], flat["rest_of_line.exact_match_left_to_right"]) == (1.0, None)
    assert flat["vs_left_to_right"] is None


def test_the_page_and_the_keys_are_written(options: InfillOptions, progress: Progress, tmp_path: Path) -> None:
    report = measure_infill(options, Scripted(), count, progress, weights="w")
    report.write(json_path=tmp_path / "o.json", results=tmp_path / "results")
    flat = json.loads((tmp_path / "o.json").read_text())
    assert [flat[f"{row}.exact_match"] for row in KINDS] == [1.0] * 5
    assert isinstance(flat["loaded"], bool)
    page = (tmp_path / "results" / "bench-infill.md").read_text()
    assert page.startswith("# bench infill\n")
    assert flat["command"] in page
    assert flat["commit"] in page
    assert flat["cpu"] in page
