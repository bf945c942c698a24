from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.bench.measure import PlainMeasure

from calomel.bench.holes import KINDS, REST_OF_LINE, TOKEN_ALIGNED
from calomel.bench.infill import Attempt, InfillOptions, collect, contenders_of, measure_infill
from calomel.bench.model import LEFT_TO_RIGHT, Contender
from calomel.report.heldout import Hole
from calomel.report.running import Journal, Progress


@dataclass
class Scripted:
    """Right under every policy but left to right, which is wrong in Go, and slower."""

    asked: list[tuple[str, str]] = field(default_factory=list)

    def prime(self, hole: Hole) -> float:
        return 100.0

    def attempt(self, hole: Hole, contender: Contender) -> Attempt:
        self.asked.append((hole.key, contender.name))
        if contender.name == LEFT_TO_RIGHT:
            text = "wrong" if hole.language == "go" else hole.answer
            return Attempt(text, 5, 5, 50.0, "stop")
        return Attempt(hole.answer, 6, 2, 20.0, "stop")


@pytest.fixture
def options(heldout: Path, tmp_path: Path) -> InfillOptions:
    return InfillOptions(
        heldout=heldout, cache=tmp_path / "cache", holes_per_kind=8, human_eval=False, command="calomel bench infill"
    )


def test_every_row_is_told_for_the_policy_and_left_to_right(options: InfillOptions, progress: Progress) -> None:
    report = measure_infill(options, Scripted(), PlainMeasure(), progress, weights="w")
    for row in (*KINDS, TOKEN_ALIGNED):
        assert report.flat[f"{row}.exact_match"] == 1.0
        assert report.flat[f"{row}.exact_match_n"] == 8
        assert report.flat[f"{row}.exact_match_left_to_right"] == 0.5
        assert report.flat[f"{row}.go.exact_match_left_to_right"] == 0.0
        assert report.flat[f"{row}.python.exact_match_left_to_right"] == 1.0


def test_the_comparison_with_left_to_right(options: InfillOptions, progress: Progress) -> None:
    flat = measure_infill(options, Scripted(), PlainMeasure(), progress, weights="w").flat
    assert flat["exact_match_minus_left_to_right"] == 0.5
    assert flat["exact_match_minus_left_to_right_n"] == 8
    assert flat["tokens_per_forward"] == 3.0
    assert flat["vs_left_to_right"] == 0.4
    assert flat["vs_left_to_right_cold"] == pytest.approx(0.8)
    assert flat["vs_left_to_right_same_answer_n"] == 20


def test_a_share_has_its_interval(options: InfillOptions, progress: Progress) -> None:
    flat = measure_infill(options, Scripted(), PlainMeasure(), progress, weights="w").flat
    assert flat["rest_of_line.exact_match_low"] == pytest.approx(0.6756, abs=1e-4)
    assert flat["rest_of_line.exact_match_high"] == 1.0


def test_contenders_take_turns_at_being_first(options: InfillOptions, progress: Progress) -> None:
    scripted = Scripted()
    measure_infill(options, scripted, PlainMeasure(), progress, weights="w")
    assert [name for _, name in scripted.asked[::2]] == ["default", LEFT_TO_RIGHT] * 24


def test_a_second_run_asks_nothing_again(options: InfillOptions, progress: Progress) -> None:
    first = measure_infill(options, Scripted(), PlainMeasure(), progress, weights="w")
    again = Scripted()
    second = measure_infill(options, again, PlainMeasure(), progress, weights="w")
    assert again.asked == []
    assert second.flat["rest_of_line.exact_match"] == first.flat["rest_of_line.exact_match"]
    assert second.flat["resumed_records"] == 96


def test_other_weights_are_asked_anew(options: InfillOptions, progress: Progress) -> None:
    measure_infill(options, Scripted(), PlainMeasure(), progress, weights="w")
    again = Scripted()
    measure_infill(options, again, PlainMeasure(), progress, weights="other")
    assert len(again.asked) == 96


def test_an_early_end_leaves_whole_pairs(tmp_path: Path, progress: Progress, clock: Callable[[], float]) -> None:
    holes = [Hole(f"h{number}", REST_OF_LINE, "python", None, "", "", "x") for number in range(10)]
    contenders = contenders_of(InfillOptions())
    with Journal(tmp_path, "infill", {}) as journal:
        outcomes = collect(holes, contenders, Scripted(), journal, progress, deadline=3.5, clock=clock)
    assert [(outcome.hole.key, outcome.contender) for outcome in outcomes] == [
        (f"h{number}", name) for number in range(4) for name in ("default", LEFT_TO_RIGHT)
    ]


def test_a_sweep_has_one_line_a_policy(options: InfillOptions, progress: Progress) -> None:
    swept = replace(options, policies=("fixed:2@4", "default", LEFT_TO_RIGHT))
    report = measure_infill(swept, Scripted(), PlainMeasure(), progress, weights="w")
    assert [row[0] for row in report.tables[0].rows] == ["default", "fixed:2@4", LEFT_TO_RIGHT]
    assert report.flat["sweep.fixed:2@4.exact_match"] == 1.0
    assert report.flat["sweep.fixed:2@4.vs_left_to_right"] == 0.4
    assert report.flat["sweep.left_to_right.exact_match"] == 0.5


def test_without_a_causal_mode_left_to_right_is_left_out(options: InfillOptions, progress: Progress) -> None:
    scripted = Scripted()
    flat = measure_infill(options, scripted, PlainMeasure(), progress, weights="w", baseline=False).flat
    assert {name for _, name in scripted.asked} == {"default"}
    assert (flat["rest_of_line.exact_match"], flat["rest_of_line.exact_match_left_to_right"]) == (1.0, None)
    assert flat["vs_left_to_right"] is None


def test_absent_public_tasks_are_skipped_and_said_so(
    options: InfillOptions, progress: Progress, tmp_path: Path
) -> None:
    wanted = replace(options, human_eval=True, data=tmp_path)
    report = measure_infill(wanted, Scripted(), PlainMeasure(), progress, weights="w")
    assert "does not exist" in str(report.flat["human_eval_skipped"])
    assert report.flat["humaneval_single_line.exact_match"] is None
    assert "HumanEval-Infilling was left out" in report.to_markdown()


def test_the_page_and_the_keys_are_written(options: InfillOptions, progress: Progress, tmp_path: Path) -> None:
    report = measure_infill(options, Scripted(), PlainMeasure(), progress, weights="w")
    report.write(json_path=tmp_path / "o.json", results=tmp_path / "results")
    flat = json.loads((tmp_path / "o.json").read_text())
    assert [flat[f"{row}.exact_match"] for row in KINDS] == [1.0] * 5
    assert flat["command"] == "calomel bench infill"
    assert isinstance(flat["loaded"], bool)
    page = (tmp_path / "results" / "bench-infill.md").read_text()
    assert "    calomel bench infill\n" in page
    assert flat["commit"] in page
    assert flat["cpu"] in page
