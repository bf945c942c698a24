from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.replay.made import opportunity, result, shown
from tests.replay.scripted import Scripted, log_of, replayed, typed

from calomel.engine import Work
from calomel.replay.figures import makers
from calomel.replay.opportunity import LogResult, Opportunity
from calomel.replay.summary import listings, summarize
from calomel.report.result import CONVERTER
from calomel.report.stats import Floats
from calomel.selectivity.sample import aurc, auroc, brier, ece, reliability
from calomel.suggest.completer import CompleteAnswer, CompleteRequest


def of(*values: float) -> Floats:
    return np.asarray(values, dtype=np.float64)


def test_a_confidence_that_ranks_perfectly_has_an_auroc_of_1() -> None:
    assert auroc(of(0.9, 0.8, 0.2, 0.1), of(1, 1, 0, 0)) == 1.0


def test_equal_confidences_count_half() -> None:
    # Pairs (taken, not): (.5, .5) half, (.5, .1) one, (.9, .5) one, (.9, .1) one: 3.5 of 4.
    assert auroc(of(0.5, 0.9, 0.5, 0.1), of(1, 1, 0, 0)) == pytest.approx(3.5 / 4)


def test_without_both_outcomes_there_is_no_auroc() -> None:
    assert auroc(of(0.5, 0.6), of(1, 1)) is None
    assert auroc(of(), of()) is None


def test_aurc_is_the_mean_risk_of_the_surest_k() -> None:
    # Risks of the 1, 2, 3, 4 surest: 0, 1/2, 1/3, 1/2.
    assert aurc(of(0.9, 0.8, 0.7, 0.6), of(1, 0, 1, 0)) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)


def test_the_order_of_equally_sure_suggestions_decides_nothing() -> None:
    assert aurc(of(0.5, 0.5), of(1, 0)) == aurc(of(0.5, 0.5), of(0, 1)) == pytest.approx(0.5)


def test_bins_tell_mean_confidence_and_the_share_taken() -> None:
    low, high = reliability(of(0.91, 0.99, 0.15), of(1, 0, 0))
    assert (low.low, low.high, low.size, low.taken) == (0.1, 0.2, 1, 0.0)
    assert (high.low, high.high, high.size, high.taken) == (0.9, 1.0, 2, 0.5)
    assert (low.confidence, high.confidence) == pytest.approx((0.15, 0.95))


def test_a_confidence_of_1_lies_in_the_last_bin() -> None:
    assert reliability(of(1.0), of(1)) == [(0.9, 1.0, 1, 1.0, 1.0)]


def test_ece_weighs_the_bins_by_their_counts() -> None:
    # (2 * |0.5 - 0.95| + 1 * |0 - 0.15|) / 3
    assert ece(of(0.91, 0.99, 0.15), of(1, 0, 0)) == pytest.approx((2 * 0.45 + 0.15) / 3)


def test_brier_is_the_mean_squared_distance() -> None:
    assert brier(of(0.8, 0.4), of(1, 0)) == pytest.approx((0.04 + 0.16) / 2)


def test_nothing_suggested_gives_no_figure() -> None:
    assert (ece(of(), of()), brier(of(), of()), aurc(of(), of())) == (None, None, None)


def test_each_maker_is_counted_where_it_proposed_and_where_it_was_chosen() -> None:
    rename = replace(shown("accepted"), maker="rename")
    canvas = replace(shown("rejected"), maker="canvas")
    items = [
        replace(opportunity(1, rename), makers=("canvas", "rename")),
        replace(opportunity(2, canvas, silence="low_confidence"), makers=("canvas",)),
        replace(opportunity(3, None, silence="no_change"), makers=("rename",)),
        opportunity(4, shown("accepted")),
    ]
    assert makers(items) == {
        "canvas": {"proposed": 2, "chosen": 1, "shown": 0, "accepted": 0, "partly": 0},
        "rename": {"proposed": 2, "chosen": 1, "shown": 1, "accepted": 1, "partly": 0},
    }


def test_makers_survive_a_journal() -> None:
    item = replace(opportunity(1, replace(shown(), maker="rename")), makers=("canvas", "rename"))
    assert CONVERTER.structure(CONVERTER.unstructure(item), Opportunity) == item


def done(item: Opportunity, steps: int, rows: int) -> Opportunity:
    return replace(item, steps=steps, rows=rows)


def some() -> LogResult:
    whole = shown("accepted", saved=8, signals={"tokens": 4.0, "characters_inserted": 8.0})
    part = shown("partly", saved=6, signals={"tokens": 4.0, "characters_inserted": 12.0})
    return result(
        [
            done(opportunity(0, whole, computed=10), 2, 40),
            done(opportunity(1, part, computed=10), 3, 60),
            done(opportunity(2, shown("accepted", saved=50), silence="low_confidence"), 2, 40),
            done(opportunity(3, silence="empty", computed=10), 1, 20),
            opportunity(4, silence="off_file"),
        ]
    )


def test_steps_are_told_by_question_and_by_what_was_accepted() -> None:
    summary = summarize([some()])
    assert (summary["steps"], summary["rows"]) == (8, 160)
    assert summary["steps_per_question"] == pytest.approx(8 / 4)
    assert summary["rows_per_question"] == pytest.approx(160 / 4)
    # All of four tokens, and half of four.
    assert summary["steps_per_accepted_token"] == pytest.approx(8 / 6)
    assert summary["steps_per_accepted_character"] == pytest.approx(8 / 14)
    assert summary["rows_per_accepted_character"] == pytest.approx(160 / 14)
    assert ("steps per accepted token" in {row[0] for row in listings(summary)[0].rows}) is True


def test_where_nobody_counts_nothing_is_told() -> None:
    summary = summarize([result([opportunity(0, shown("accepted", saved=8), computed=10)])])
    assert summary["steps_per_question"] is None
    assert summary["steps_per_accepted_token"] is None


@dataclass
class Counting(Scripted):
    """Two steps of ten rows for each question."""

    work: Work = Work()  # noqa: RUF009  (frozen)

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        self.work += Work(3, 2, 30)
        return await super().complete(request)


def test_what_the_engine_did_for_a_question_stands_beside_its_outcome() -> None:
    log = log_of(*typed("x = ", 0, 1.0), *typed("compute(1)\n", 4, 4.0, entry=5))
    found = replayed(log, Counting({"x = ": "compute(1)"}))
    first = found.opportunities[0]
    assert (first.shown, first.steps, first.rows) == (True, 2, 30)
    assert CONVERTER.structure(CONVERTER.unstructure(found), LogResult).opportunities[0] == first
