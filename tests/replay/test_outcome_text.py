from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay.recordings import texts

from calomel.replay.events import Accepted, Changed, Closed, Edit, Offered, Opened
from calomel.replay.logs import read_log
from calomel.replay.outcome_text import read_outcome_text
from calomel.suggest.outcome import Outcome
from calomel.suggest.outcome_log import OutcomeLog


def line(outcome: str, time: float, **values: Any) -> str:
    made = {"time": time, "id": "s1", "outcome": outcome, "session": "w", "extension": "py", "language": "python",
            "model": "nano", "text": "😀b()\nc"} | values  # fmt: skip
    return json.dumps({name: value for name, value in made.items() if value is not None})


def test_a_suggestion_is_offered_and_taken_bit_by_bit() -> None:
    log = read_outcome_text(
        "o",
        [line("shown", 10), line("partly_accepted", 11, accepted_length=3), line("accepted", 12.5)],
    )
    document, text = "w/s1.py", "😀b()\nc"
    assert log.events == [
        Opened(0, 0.0, document, "python", ""),
        Offered(0, 0.0, document, (Edit(0, 0, text),), "nano", "s1", False, 0.0),
        Accepted(1, 1.0, document, (Edit(0, 0, "😀b"),)),
        Changed(1, 1.0, document, (Edit(0, 0, "😀b"),), "accept"),
        Accepted(2, 2.5, document, (Edit(2, 2, "()\nc"),)),
        Changed(2, 2.5, document, (Edit(2, 2, "()\nc"),), "accept"),
        Closed(2, 2.5, document),
    ]
    assert texts(log.events) == {document: text}
    assert (log.checks.accepts, log.problems) == (1, [])


def test_outcomes_without_text_are_counted() -> None:
    log = read_outcome_text("o", [line("shown", 1), line("shown", 2, text=None), line("rejected", 3, text=None)])
    assert [(problem.entry, problem.message[:10]) for problem in log.problems] == [(1, "2 outcomes")]
    assert log.metadata["without text"] == "2"


@pytest.mark.parametrize("wrong", ["{", "17", '{"time": 1}', line("vanished", 2), line("shown", 2)[:30]])
def test_a_wrong_line_is_named_and_the_rest_is_read(wrong: str) -> None:
    log = read_outcome_text("o", [line("shown", 1), wrong, line("rejected", 3)])
    assert [problem.entry for problem in log.problems] == [1]
    assert [type(event) for event in log.events] == [Opened, Offered, Closed]


def test_time_that_runs_backwards_is_held() -> None:
    log = read_outcome_text("o", [line("shown", 10), line("rejected", 7)])
    assert [problem.entry for problem in log.problems] == [1]
    assert {event.time for event in log.events} == {0.0}


def test_what_calomel_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    kept = OutcomeLog(path, mask=lambda text: text, wall=lambda: 5.0)
    kept.record(
        Outcome("a", "accepted", "by_command", "fill", "file:///w/a.rs", "rust", "typed", "nano", 0.5, 1.0, 3, 3, "x()")
    )
    kept.close()
    log = read_log(path)
    assert (log.kind, log.checks.accepts, log.problems) == ("outcomes", 1, [])
    assert [text for _, text in texts(log.events).items()] == ["x()"]


@settings(deadline=None)
@given(st.lists(st.text(max_size=20) | st.builds(line, st.sampled_from(["shown", "accepted"]), st.floats(0, 9))))
def test_any_lines_are_read_without_an_error(lines: list[str]) -> None:
    log = read_outcome_text("o", lines)
    texts(log.events)
    times = [event.time for event in log.events]
    assert times == sorted(times)
