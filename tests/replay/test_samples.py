from __future__ import annotations

import math

import pytest
from tests.replay.scripted import Scripted, log_of, typed

from calomel.replay.events import ReplayLog
from calomel.replay.opportunity import ReplayOptions
from calomel.replay.runs import replay_log
from calomel.selectivity.sample import Sample

SAMPLES = ReplayOptions(latency=0.05, samples=True)


def model() -> Scripted:
    return Scripted({"x = ": "compute(1)"}, rivals=(("forget(2)", "seeded"), ("f(a]", "canvas"), ("c", "seeded")))


def played(log: ReplayLog, answers: Scripted, options: ReplayOptions = SAMPLES) -> list[Sample]:
    result = replay_log(log, answers, options)
    assert not result.error
    assert result.text_right
    return result.samples


def test_every_candidate_of_a_question_is_there_with_what_the_person_would_have_done() -> None:
    found = played(writing(), model())
    assert [(each.maker, each.outcome) for each in found] == [
        ("canvas", "accepted"),
        ("seeded", "rejected"),
        ("canvas", "rejected"),
        ("seeded", "too_short"),
    ]
    assert {each.question for each in found} == {"log:4:fill"}
    accepted, _, unbalanced, _ = found
    assert (accepted.saved_characters, accepted.filters, accepted.language) == (9, (), "python")
    assert "unbalanced" in unbalanced.filters
    assert accepted.signals["characters_inserted"] == 10
    assert accepted.signals["mean_log_prob"] == pytest.approx(math.log(0.9), abs=1e-6)
    assert accepted.signals["rivals"] == 3
    assert not any(each.shown for each in found)
    assert accepted.judged_ms > 0
    assert 1.3 < accepted.time < 2.0


def writing(name: str = "log") -> ReplayLog:
    """Somebody writes a call, and something else much later."""
    call = typed("compute(1)\n", 4, 4.0, entry=5)
    return log_of(*typed("x = ", 0, 1.0), *call, *typed("y", 15, 80.0, entry=20), name=name)


def test_samples_hold_no_text_and_are_taken_only_when_they_are_asked_for() -> None:
    assert all("compute" not in each.to_line() for each in played(writing(), model()))
    assert played(writing(), model(), ReplayOptions(latency=0.05)) == []
