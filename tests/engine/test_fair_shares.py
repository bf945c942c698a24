"""Clients have equal shares of every step, whatever each of them asks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from calomel.engine import Handle, Priority, Request
from calomel.engine.request import Result
from calomel.engine.scheduler import Pace, Scheduler

BATCH = 8


@dataclass(eq=False)
class Job:
    """A request of `client` that is answered in `steps` steps, behind so much context."""

    client: str
    steps: int = 1
    prefill_left: int = 0
    priority: Priority = Priority.INTERACTIVE
    handle: Handle = field(default_factory=Handle)
    prefill_rows: int = 0
    request: Request = field(init=False)

    def __post_init__(self) -> None:
        self.request = Request((1,), client=self.client, priority=self.priority)


class Line:
    """A scheduler, stepped by hand."""

    def __init__(self) -> None:
        pace = Pace(most=512, seconds=None)
        self.scheduler = Scheduler(max_batch=BATCH, pace=pace)
        self.now = 0
        self.done: dict[Job, int] = {}

    def ask(self, *jobs: Job) -> None:
        self.scheduler.submit(cast("Any", jobs))

    def step(self) -> list[Job]:
        self.now += 1
        self.scheduler.leaving()
        while self.scheduler.admit():
            pass
        picked = cast("list[Job]", self.scheduler.pick())
        for job in picked:
            job.prefill_left -= job.prefill_rows
            job.steps -= not job.prefill_rows
            if not job.steps:
                job.handle.settle(_result())
                self.done[job] = self.now
        return picked


def _result() -> Any:
    return Result.__new__(Result)


@pytest.mark.parametrize("crowd", [32, 200])
def test_a_short_request_is_answered_in_as_many_steps_as_alone(crowd: int) -> None:
    line = Line()
    line.ask(*(Job("busy", steps=2048) for _ in range(crowd)))
    for _ in range(10):
        line.step()
    short = Job("other", steps=4)
    line.ask(short)

    # Beside it there are no more of the busy one's than its share.
    beside = [Counter(job.client for job in line.step())["busy"] for _ in range(4)]

    assert line.done[short] == 14
    assert max(beside) <= BATCH // 2


def test_many_short_requests_of_one_do_not_hold_up_another_ones_context() -> None:
    line = Line()
    line.ask(*(Job("busy", prefill_left=500) for _ in range(32)))
    line.step()
    other = Job("other", prefill_left=1000)
    line.ask(other)
    steps = 0
    while other not in line.done:
        steps += 1
        line.step()

    assert steps <= 6  # a half of every chunk of 512, and the answer


def test_clients_take_turns_where_there_are_more_of_them_than_places() -> None:
    line = Line()
    jobs = [Job(f"client {number}", steps=100) for number in range(2 * BATCH)]
    line.ask(*jobs)

    served = Counter(job for _ in range(10) for job in line.step())

    assert set(served.values()) == {5}


def test_each_client_has_as_much_as_each_other() -> None:
    line = Line()
    line.ask(*(Job(name, steps=10_000) for name in "aaaaaaaaaaaaaaaaabbc"))

    served = Counter(job.client for _ in range(300) for job in line.step())

    # c has one request, which is in every step; b has two.
    assert served["c"] == 300
    assert served["b"] == 600
    assert 600 <= served["a"] <= 900


def test_who_is_alone_has_the_whole_step() -> None:
    line = Line()
    line.ask(*(Job("busy", steps=10) for _ in range(32)))

    assert len(line.step()) == BATCH


def test_what_is_interactive_goes_first_whoever_asks() -> None:
    line = Line()
    line.ask(*(Job("one", steps=10, priority=Priority.BACKGROUND) for _ in range(32)))
    line.step()
    urgent = Job("two", steps=2)
    line.ask(urgent)

    assert [line.step(), line.step()] == [[urgent], [urgent]]
    assert line.done[urgent] == 3
