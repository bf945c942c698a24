"""The figures of a replay, by hand and by their books."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import numpy as np
import pytest
from tests.replay.made import opportunity, result, shown

from calomel.replay.figures import aurc, brier
from calomel.replay.opportunity import Opportunity
from calomel.replay.summary import ComparisonError, compare, counts_line, document, listings, summarize
from calomel.replay.text_metrics import (
    changed_middle,
    chrf,
    delta_chrf,
    suite_delta_chrf,
)
from calomel.report.stats import Floats
from calomel.selectivity.sample import auroc, ece


def of(*values: float) -> Floats:
    return np.asarray(values, dtype=np.float64)


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


def run_of(*saved: int) -> dict[str, object]:
    items = [opportunity(entry, shown("accepted", saved=number), time=entry * 61) for entry, number in enumerate(saved)]
    loaded: dict[str, object] = json.loads(json.dumps(document([result(items)])))
    return loaded


def test_runs_are_compared_over_the_opportunities_that_both_had() -> None:
    found = compare(run_of(1, 2, 3), run_of(2, 3, 4, 100))
    assert found.caption == "3 opportunities in both, 0 only in the first, 1only in the second"
    rows = {row[0]: row[1:] for row in found.rows}
    assert rows["characters_per_opportunity"][2] == "1.000 [1.000, 1.000]"
    assert rows["acceptance_rate"] == ("100.0% [43.9%, 100.0%]", "100.0% [51.0%, 100.0%]", "-")


def test_a_file_of_something_else_is_refused_in_a_sentence() -> None:
    with pytest.raises(ComparisonError, match="the second file is not a result"):
        compare(run_of(1), {"score": 1})


@pytest.mark.parametrize(
    ("figure", "scores", "taken", "expected"),
    [
        (auroc, (0.9, 0.8, 0.2, 0.1), (1, 1, 0, 0), 1.0),
        # Pairs (taken, not): (.5, .5) half, (.5, .1) one, (.9, .5) one, (.9, .1) one: 3.5 of 4.
        (auroc, (0.5, 0.9, 0.5, 0.1), (1, 1, 0, 0), 3.5 / 4),
        # Risks of the 1, 2, 3, 4 surest: 0, 1/2, 1/3, 1/2; the order of equally sure ones decides nothing.
        (aurc, (0.9, 0.8, 0.7, 0.6), (1, 0, 1, 0), (0 + 1 / 2 + 1 / 3 + 1 / 2) / 4),
        (aurc, (0.5, 0.5), (1, 0), 0.5),
        # (2 * |0.5 - 0.95| + 1 * |0 - 0.15|) / 3
        (ece, (0.91, 0.99, 0.15), (1, 0, 0), (2 * 0.45 + 0.15) / 3),
        (brier, (0.8, 0.4), (1, 0), (0.04 + 0.16) / 2),
        *((figure, (), (), None) for figure in (auroc, aurc, ece, brier)),
    ],
)
def test_figures_of_confidences_are_those_of_the_books(
    figure: Callable[[Floats, Floats], float | None],
    scores: tuple[float, ...],
    taken: tuple[int, ...],
    expected: float | None,
) -> None:
    assert figure(of(*scores), of(*taken)) == pytest.approx(expected)


def test_rates_are_of_what_a_person_saw_long_enough() -> None:
    summary = summarize([result(some())])
    expected = {
        "opportunities": 8, "shown": 3, "shown_rate": 3 / 8, "acceptance_rate": 1 / 3, "partly_rate": 1 / 3,
        "kept_rate": 1 / 2, "superseded": 1, "too_short": 1, "characters_per_opportunity": 12 / 8,
        "saved_share": 12 / 100,
        # 0.9 taken, 0.6 not, 0.7 partly (not), 0.2 taken though suppressed: pairs won 0.9 over both, 0.2 over none.
        "auroc": 2 / 4,
    }  # fmt: skip
    assert {name: summary[name] for name in expected} == pytest.approx(expected)
    assert summary["silences"] == {"empty": 1, "low_confidence": 1, "off_file": 1, "superseded": 1}
    assert summarize([result(some(), minutes=4)])["wasted_per_minute"] == pytest.approx(1 / 4)
    asked = summarize([result(some()[:3])])
    assert (asked["latency_p50_ms"], asked["computed_tokens"], asked["cached_share"]) == (20, 150 / 3, 650 / 800)
    words = {row[0]: row[1] for row in listings(summary)[0].rows}
    assert words["shown of opportunities"].startswith("37.5% [")
    assert "parse errors added" not in words
    assert "opportunities 8" in counts_line(summary)


def test_nothing_observed_leaves_null() -> None:
    summary = summarize([])
    assert (summary["opportunities"], summary["acceptance_rate"], summary["steps_per_question"]) == (0, None, None)
    json.dumps(summary, allow_nan=False)
    # And none of twenty is not certainly none.
    summary = summarize([result([opportunity(entry, shown("rejected", after="y")) for entry in range(20)])])
    assert (summary["exact_match"], summary["exact_match_high"]) == (0.0, pytest.approx(0.161, abs=1e-3))
    assert summary["acceptance_rate_high"] == pytest.approx(0.161, abs=1e-3)  # Wilson


@pytest.mark.parametrize(
    ("made", "wanted", "score"),
    [
        ("return x", "return x", 100.0),
        ("abc", "xyz", 0.0),
        # 1-grams P 2/2, R 2/3; 2-grams P 1/1, R 1/2; 3-grams P 0, R 0; longer ones do not occur. F = 5PR / (4P + R):
        # 5*(2/3)/(4+2/3) = 0.714286; 5*0.5/4.5 = 0.555556; 0. Their mean is 0.423280.
        ("ab", "abc", 42.3280),
    ],
)
def test_chrf(made: str, wanted: str, score: float) -> None:
    assert chrf(made, wanted) == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize(
    ("before", "made", "wanted", "score"),
    [
        ("a\nb", "a\nb", "a\nb", 100.0),
        ("abcdef", "abcdef ghijkl", "abcdef", 0.0),
        # The 1-, 2- and 3-grams are all wrong, 4- to 6-grams do not occur: 3 of 6 orders, which count as right.
        ("ab", "abd", "abc", 50.0),
        # 1-grams: wanted -b -c, made -c: P 1, R 1/2. 2-grams: wanted -ab -bc, made -bc: P 1, R 1/2. 3-grams: both -abc:
        # 1, 1. Longer: 1, 1. P 1, R 5/6, F = 5*(5/6)/(4+5/6) = 0.862069.
        ("abc", "ab", "a", 86.2069),
        ("a b", "a  b\n\tc", "a b c", 100.0),
    ],
)
def test_delta_chrf_is_of_what_changed(before: str, made: str, wanted: str, score: float) -> None:
    assert delta_chrf(before, made, wanted) == pytest.approx(score, abs=1e-4)


def test_the_suites_score_is_of_the_changed_middle_alone() -> None:
    before = "one\ntwo\nthree\n"
    assert suite_delta_chrf(before, "one\nTWO\nthree\n", "one\nTWO\nthree\n") == pytest.approx(100.0)
    assert suite_delta_chrf(before, before, "one\nTWO\nthree\n") == 0.0
    assert suite_delta_chrf("a\nb", "a\nb", "a\nb") == 100.0
    assert changed_middle("a\nb\nc\n", "a\nX\nY\nc\n") == "X\nY"
    assert changed_middle("a\r\nb", "a\nB") == "B"
    assert changed_middle("a\na", "a\na\na") == "a"
