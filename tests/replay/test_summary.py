from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from tests.replay.made import opportunity, result, shown

from calomel.replay.opportunity import Opportunity
from calomel.replay.summary import ComparisonError, compare, counts_line, document, listings, summarize


def some() -> list[Opportunity]:
    return [
        opportunity(0, shown("accepted", 0.9, saved=10, kept=True), latency_ms=10, computed=100, cached=300),
        opportunity(1, shown("rejected", 0.6, after="x = 2"), latency_ms=20, computed=50, cached=350),
        opportunity(2, shown("partly", 0.7, saved=2, kept=False), latency_ms=30),
        opportunity(3, silence="off_file"),
        opportunity(4, shown("accepted", 0.2), silence="low_confidence", latency_ms=40),
        opportunity(5, shown("superseded", 0.8), silence="superseded", latency_ms=900),
        opportunity(6, shown("too_short", 0.8), latency_ms=50),
        opportunity(7, silence="empty", computed=10),
    ]


def test_rates_are_of_what_a_person_saw_long_enough() -> None:
    summary = summarize([result(some())])
    assert summary["opportunities"] == 8
    assert summary["shown"] == 3
    assert summary["shown_rate"] == pytest.approx(3 / 8)
    assert summary["acceptance_rate"] == pytest.approx(1 / 3)
    assert summary["partly_rate"] == pytest.approx(1 / 3)
    assert summary["kept_rate"] == pytest.approx(1 / 2)
    assert (summary["superseded"], summary["too_short"]) == (1, 1)


def test_the_main_figure_is_characters_saved_per_opportunity() -> None:
    summary = summarize([result(some())])
    assert summary["characters_per_opportunity"] == pytest.approx(12 / 8)
    assert summary["saved_share"] == pytest.approx(12 / 100)


def test_wasted_suggestions_are_counted_by_the_minute_of_typing() -> None:
    assert summarize([result(some(), minutes=4)])["wasted_per_minute"] == pytest.approx(1 / 4)


def test_silences_are_counted_by_their_reason() -> None:
    assert summarize([result(some())])["silences"] == {"empty": 1, "low_confidence": 1, "off_file": 1, "superseded": 1}


def test_the_confidence_is_judged_on_suppressed_suggestions_too() -> None:
    # 0.9 taken, 0.6 not, 0.7 partly (not), 0.2 taken though suppressed: pairs won 0.9 over both, 0.2 over none.
    summary = summarize([result(some())])
    assert summary["auroc"] == pytest.approx(2 / 4)
    assert sum(each["size"] for each in summary["reliability"]) == 4


def test_latency_is_of_the_questions_that_a_model_was_asked() -> None:
    summary = summarize([result(some()[:3])])
    assert summary["latency_p50_ms"] == 20
    assert summary["computed_tokens"] == pytest.approx(150 / 3)
    assert summary["cached_share"] == pytest.approx(650 / 800)


def test_quality_is_of_shown_suggestions_whose_outcome_is_known() -> None:
    items = [
        opportunity(0, shown(signals={"parse_error_delta": 0.5})),
        opportunity(1, shown("rejected", after="x = 2", expected="x = 1")),
        opportunity(2, shown("rejected", expected=None)),
    ]
    summary = summarize([result(items)])
    assert summary["exact_match"] == pytest.approx(1 / 2)
    assert summary["parse_error_delta"] == pytest.approx(0.5)
    assert summary["steps_per_question"] is None


def test_nothing_observed_leaves_null() -> None:
    summary = summarize([])
    assert summary["opportunities"] == 0
    assert summary["acceptance_rate"] is None
    assert summary["recorded_acceptance_same_rule"] is None
    json.dumps(summary, allow_nan=False)


def test_none_of_twenty_is_not_certainly_none() -> None:
    summary = summarize([result([opportunity(entry, shown("rejected", after="y")) for entry in range(20)])])
    assert (summary["exact_match"], summary["exact_match_high"]) == (0.0, pytest.approx(0.161, abs=1e-3))
    assert summary["acceptance_rate"] == 0.0
    assert summary["acceptance_rate_high"] == pytest.approx(0.161, abs=1e-3)  # Wilson


def test_at_the_recorded_rate_our_surest_are_compared_with_its_offers() -> None:
    ours = [
        opportunity(entry, shown("accepted" if entry < 2 else "rejected", 1 - entry / 10, saved=5))
        for entry in range(6)
    ]
    theirs = [
        opportunity(10, shown("accepted", None, saved=7, kept=True, source="other")),
        opportunity(11, shown("rejected", None, source="other")),
    ]
    found = result(ours, theirs)
    found.real_accepts, found.real_offers = 1, 4
    summary = summarize([found])
    assert (summary["recorded_shown"], summary["shown_at_recorded_rate"]) == (2, 2)
    assert summary["recorded_acceptance_same_rule"] == pytest.approx(1 / 2)
    assert summary["acceptance_at_recorded_rate"] == pytest.approx(1.0)
    assert summary["acceptance_difference_at_recorded_rate"] == pytest.approx(1 / 2)
    assert summary["characters_per_opportunity_at_recorded_rate"] == pytest.approx(10 / 6)
    assert summary["recorded_characters_per_opportunity"] == pytest.approx(7 / 6)
    assert summary["real_acceptance_rate"] == pytest.approx(1 / 4)
    assert summary["opportunities"] == 6
    assert listings(summary)[1].rows[0][0] == "accepted of shown"
    json.dumps(document([found]), allow_nan=False)


def test_what_a_person_writes_is_saved_once_at_the_recorded_rate() -> None:
    """Both would have been accepted, but the second was asked for while the first was being written."""
    first = replace(shown("accepted", 0.9, saved=8), given=5.0)
    second = replace(shown("accepted", 0.8, saved=6), given=5.0)
    ours = [opportunity(0, first, silence="low_confidence"), opportunity(2, second, silence="low_confidence")]
    theirs = [opportunity(10 + number, shown("rejected", None)) for number in range(2)]
    summary = summarize([result(ours, theirs)])
    assert summary["shown_at_recorded_rate"] == 1
    assert summary["characters_per_opportunity_at_recorded_rate"] == pytest.approx(8 / 2)


def test_a_suggestion_without_a_confidence_is_the_least_sure() -> None:
    ours = [opportunity(0, shown("rejected", None)), opportunity(1, shown("accepted", 0.1))]
    summary = summarize([result(ours, [opportunity(2, shown("accepted", None))])])
    assert summary["acceptance_at_recorded_rate"] == 1.0
    assert sum(each["size"] for each in summary["reliability"]) == 1


def many(seed: int) -> list[Opportunity]:
    rng = random.Random(seed)
    return [
        opportunity(
            entry, shown(rng.choice(["accepted", "rejected"]), rng.random(), saved=rng.randrange(9)), time=entry * 7
        )
        for entry in range(200)
    ]


def test_every_figure_lies_within_its_bounds_and_is_the_same_again_under_a_seed() -> None:
    results = [result(many(1)), result(many(2), log="other")]
    summary = summarize(results, seed=5)
    assert summary == summarize(results, seed=5)
    for name in [name.removesuffix("_low") for name in summary if name.endswith("_low")]:
        if summary[name] is not None:
            assert summary[f"{name}_low"] <= summary[name] <= summary[f"{name}_high"], name


def test_other_seeds_move_bounds_and_not_figures() -> None:
    one, other = (summarize([result(many(1))], seed=seed) for seed in (1, 2))
    assert one["acceptance_rate"] == other["acceptance_rate"]
    assert one["acceptance_rate_low"] != other["acceptance_rate_low"]


def test_tables_show_figures_and_leave_out_what_was_not_observed() -> None:
    summary = summarize([result(some())])
    assert len(listings(summary)) == 2
    words = {row[0]: row[1] for row in listings(summary)[0].rows}
    assert words["shown of opportunities"].startswith("37.5% [")
    assert "parse errors added" not in words
    assert "opportunities 8" in counts_line(summary)


def run(*saved: int) -> dict[str, object]:
    items = [opportunity(entry, shown("accepted", saved=number), time=entry * 61) for entry, number in enumerate(saved)]
    loaded: dict[str, object] = json.loads(json.dumps(document([result(items)])))
    return loaded


def test_runs_are_compared_over_the_opportunities_that_both_had() -> None:
    found = compare(run(1, 2, 3), run(2, 3, 4, 100))
    assert found.caption == "3 opportunities in both, 0 in the first alone, 1 in the second alone"
    rows = {row[0]: row[1:] for row in found.rows}
    assert rows["characters_per_opportunity"][2] == "1.000 [1.000, 1.000]"
    assert rows["acceptance_rate"] == ("100.0% [43.9%, 100.0%]", "100.0% [51.0%, 100.0%]", "-")


def test_a_run_does_not_differ_from_itself() -> None:
    found = compare(run(1, 2, 3), run(1, 2, 3))
    assert {row[3] for row in found.rows} == {"0.000 [0.000, 0.000]", "-"}


def test_a_file_of_something_else_is_refused_in_a_sentence() -> None:
    with pytest.raises(ComparisonError, match="the second file is no result"):
        compare(run(1), {"score": 1})
