from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from tests.replay.made import opportunity, result, shown
from tests.replay.scripted import Scripted, log_of, replayed, typed

from calomel.engine.work import Work
from calomel.replay.opportunity import LogResult, Opportunity
from calomel.replay.summary import summarize
from calomel.replay.summary_table import figure_rows
from calomel.suggest.completer import CompleteAnswer, CompleteRequest


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
    assert ("steps per accepted token" in dict(figure_rows(summary))) is True


def test_where_nobody_counts_nothing_is_told() -> None:
    summary = summarize([result([opportunity(0, shown("accepted", saved=8), computed=10)])])
    assert summary["steps_per_question"] is None
    assert summary["steps_per_accepted_token"] is None


@dataclass
class Counting(Scripted):
    """Two steps of ten rows for each question."""

    work: Work = Work()  # noqa: RUF009  (frozen)

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        self.work += Work(3, 2, 30, 10)
        return await super().complete(request)


def test_what_the_engine_did_for_a_question_stands_beside_its_outcome() -> None:
    log = log_of(*typed("x = ", 0, 1.0), *typed("compute(1)\n", 4, 4.0, entry=5))
    found = replayed(log, Counting({"x = ": "compute(1)"}))
    first = found.opportunities[0]
    assert (first.shown, first.steps, first.rows) == (True, 2, 30)
    assert LogResult.from_json(found.to_json()).opportunities[0] == first
