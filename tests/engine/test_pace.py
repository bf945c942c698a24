"""A long context is encoded in chunks that leave time for others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from calomel.engine import Engine, Handle, Priority, Request
from calomel.engine.decoder import StepReport
from calomel.engine.errors import InvalidRequestError
from calomel.engine.scheduler import Pace, Scheduler

Start = Callable[..., Engine]
Scripted = Callable[..., Any]


class Device:
    """A clock on which every forward takes as long as its rows, at `rate` rows a second, and the reports of them."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.now = 0.0
        self.reports: list[StepReport] = []
        self.later: dict[int, float] = {}  # number of reports to the rate from then on

    def __call__(self) -> float:
        return self.now

    def observe(self, report: StepReport) -> None:
        self.now += report.rows / self.rate
        self.reports.append(report)
        self.rate = self.later.get(len(self.reports), self.rate)

    @property
    def waits(self) -> list[float]:
        """How long each forward took in which somebody's context was encoded beside somebody else's step."""
        return [report.rows / self.rate for report in self.reports if report.requests > 1 and report.prefill_rows]


@pytest.fixture
def wide(scripted: Scripted) -> Any:
    """Has 40,000 positions; its answers never end."""
    model = scripted(0, [7] * 40_000)
    model.config = replace(model.config, max_position_embeddings=40_000)
    return model


def ask(size: int, **options: Any) -> Request:
    return Request(tuple(index % 90 for index in range(size)), **{"canvas_lengths": (1,), **options})


def test_others_go_on_between_the_chunks_of_a_long_context(wide: Any, start: Start) -> None:
    device = Device(1000.0)
    engine = start(wide, clock=device, observe=device.observe, cache_tokens=40_000)
    long, short = ask(32_000, max_new_tokens=1), ask(40, max_new_tokens=100)

    first, second = engine.submit_all((long, short))
    second.result(60)
    reports = list(device.reports)
    first.cancel()

    # 100 canvases of one position each, all of them beside what was encoded of 32,000 tokens
    assert sum(report.prefill_rows for report in reports) < 32_000
    assert sum(report.requests > 1 and report.prefill_rows > 0 for report in reports) >= 100


@pytest.mark.parametrize("rate", [1000.0, 4000.0])
def test_a_chunk_is_as_long_as_others_may_wait_for_it(wide: Any, start: Start, rate: float) -> None:
    device = Device(rate)
    engine = start(wide, clock=device, observe=device.observe, cache_tokens=40_000, prefill_seconds=0.1)
    first, second = engine.submit_all((ask(32_000, max_new_tokens=1), ask(40, max_new_tokens=40)))
    second.result(60)
    first.cancel()

    settled = device.waits[8:]

    assert max(settled) <= 0.105
    assert max(settled) >= 0.08


def test_a_device_that_becomes_slower_gets_shorter_chunks(wide: Any, start: Start) -> None:
    device = Device(4000.0)
    engine = start(wide, clock=device, observe=device.observe, cache_tokens=40_000, prefill_seconds=0.1)
    device.later[30] = 1000.0
    first, second = engine.submit_all((ask(32_000, max_new_tokens=1), ask(40, max_new_tokens=60)))
    second.result(60)
    first.cancel()

    assert device.waits[-1] <= 0.105


def test_who_is_alone_gets_whole_chunks(wide: Any, start: Start) -> None:
    device = Device(100.0)
    engine = start(wide, clock=device, observe=device.observe, cache_tokens=40_000, prefill_chunk=256)

    engine.submit(ask(2000, max_new_tokens=1)).result(60)

    assert {report.prefill_rows for report in device.reports} == {256, 2000 % 256, 0}


def test_the_background_leaves_room_for_who_may_come(wide: Any, start: Start) -> None:
    device = Device(1000.0)
    engine = start(wide, clock=device, observe=device.observe, cache_tokens=40_000, prefill_chunk=512)

    engine.submit(ask(2000, max_new_tokens=1, priority=Priority.BACKGROUND)).result(60)

    assert max(report.prefill_rows for report in device.reports[1:]) <= 100


def test_a_short_context_does_not_wait_for_a_long_one(wide: Any, start: Start) -> None:
    device = Device(5000.0)
    engine = start(wide, clock=device, observe=device.observe, cache_tokens=40_000)
    long, short = engine.submit_all((ask(32_000, max_new_tokens=1), ask(700, max_new_tokens=1)))

    short.result(60)
    long.cancel()
    together = max(index for index, report in enumerate(device.reports) if report.requests > 1)

    assert sum(report.prefill_rows for report in device.reports[: together + 1]) <= 2000


@dataclass(eq=False)
class Waiting:
    """A request with so much context left."""

    prefill_left: int
    request: Request = field(default_factory=lambda: ask(1))
    handle: Handle = field(default_factory=Handle)
    prefill_rows: int = 0


@pytest.mark.parametrize(
    ("left", "unit", "rows"),
    [
        ([32_000, 700], 1, [128, 384]),
        ([32_000, 100], 1, [412, 100]),
        ([700, 32_000], 1, [512, 0]),
        ([32_000, 200, 600], 1, [128, 200, 184]),
        ([0, 50, 0], 1, [0, 50, 0]),
        ([32_000, 700], 96, [96, 384]),
        ([40, 700], 32, [40, 448]),
    ],
)
def test_a_chunk_is_shared_by_who_needs_least_and_who_came_first(left: list[int], unit: int, rows: list[int]) -> None:
    scheduler = Scheduler(max_batch=8, pace=Pace(most=512, unit=unit, seconds=None))
    jobs = [Waiting(size) for size in left]
    scheduler.submit(cast("Any", jobs))
    while scheduler.admit():
        pass

    picked: list[Any] = list(scheduler.pick())

    assert [job.prefill_rows for job in jobs] == rows
    assert picked == [job for job in jobs if job.prefill_rows or not job.prefill_left]


def test_a_pace_that_is_no_time_is_refused(wide: Any, start: Start) -> None:
    with pytest.raises(InvalidRequestError, match="prefill_seconds is 0"):
        start(wide, prefill_seconds=0)


def test_a_short_rest_says_nothing_about_the_speed() -> None:
    pace = Pace(most=512, seconds=0.1)
    pace.took(512, 0.1)

    pace.took(3, 0.02)

    assert pace.chunk(alone=False) == 512


def test_chunks_are_whole_units() -> None:
    pace = Pace(most=512, unit=48, seconds=0.1)
    pace.took(1000, 1.0)

    assert pace.chunk(alone=False) == 96
