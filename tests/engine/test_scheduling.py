"""Clients have equal shares of every step, and a long context is encoded in chunks that leave time for others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from tests.engine.conftest import Script, Start

from calomel.engine import Engine, Handle, Priority, Request
from calomel.engine.decoder import StepReport
from calomel.engine.request import Result
from calomel.engine.scheduler import Pace, Scheduler

BATCH = 8


@dataclass(eq=False)
class Job:
    """A request of `client` that is answered in `steps` steps, behind so much context."""

    client: str = ""
    steps: int = 1
    tokens: int = 2048
    prefill_left: int = 0
    priority: Priority = Priority.INTERACTIVE
    handle: Handle = field(default_factory=Handle)
    prefill_rows: int = 0

    @property
    def request(self) -> Request:
        return Request((1,), max_new_tokens=self.tokens, client=self.client, priority=self.priority)


class Line:
    """A scheduler, stepped by hand."""

    def __init__(self, *jobs: Job, unit: int = 1, most: int = 512) -> None:
        self.scheduler = Scheduler(max_batch=BATCH, pace=Pace(most=most, unit=unit, seconds=None))
        self.now = 0
        self.done: dict[Job, int] = {}
        self.ask(*jobs)

    def ask(self, *jobs: Job) -> None:
        self.scheduler.submit(cast("Any", jobs))

    def pick(self) -> list[Job]:
        self.now += 1
        self.scheduler.leaving()
        while self.scheduler.admit():
            pass
        return cast("list[Job]", self.scheduler.pick())

    def step(self) -> list[Job]:
        picked = self.pick()
        for job in picked:
            job.prefill_left -= job.prefill_rows
            job.steps -= not job.prefill_rows
            if not job.steps:
                job.handle.settle(Result.__new__(Result))
                self.done[job] = self.now
        return picked

    def until(self, job: Job) -> int:
        """How many steps there are until `job` is done."""
        began = self.now
        while job not in self.done:
            self.step()
        return self.now - began


@pytest.mark.parametrize("crowd", [32, 200])
def test_a_short_request_is_answered_in_as_many_steps_as_alone(crowd: int) -> None:
    line, short = Line(*(Job("busy", steps=2048) for _ in range(crowd))), Job("other", steps=4)
    for _ in range(10):
        line.step()
    line.ask(short)

    # Beside it there are no more of the busy one's than its share.
    beside = [Counter(job.client for job in line.step())["busy"] for _ in range(4)]

    assert line.done[short] == 14
    assert max(beside) <= BATCH // 2


@pytest.mark.parametrize("crowd", [32, 200])
def test_a_short_answer_does_not_wait_for_the_long_ones_of_the_same_client(crowd: int) -> None:
    line = Line(*(Job("me", steps=2048) for _ in range(crowd)))
    line.step()
    shorts = [Job("me", steps=4, tokens=64) for _ in range(3)]
    line.ask(*shorts)

    assert max(map(line.until, shorts)) <= 40
    # The rest of the line goes on.
    assert len(line.step()) == BATCH


def test_many_short_requests_of_one_do_not_hold_up_another_ones_context() -> None:
    line, other = Line(*(Job("busy", prefill_left=500) for _ in range(32))), Job("other", prefill_left=1000)
    line.step()
    line.ask(other)

    assert line.until(other) <= 6  # a half of every chunk of 512, and the answer


@pytest.mark.parametrize(
    ("clients", "steps", "least", "most"),
    [
        pytest.param("abcdefghijklmnop", 10, dict.fromkeys("abcdefghijklmnop", 5), 5, id="they take turns"),
        # c has one request, which is in every step; b has two.
        pytest.param("aaaaaaaaaaaaaaaaabbc", 300, {"a": 600, "b": 600, "c": 300}, 900, id="equal shares"),
        pytest.param("a" * 32, 1, {"a": BATCH}, BATCH, id="all for who is alone"),
    ],
)
def test_each_client_has_as_much_as_each_other(clients: str, steps: int, least: dict[str, int], most: int) -> None:
    line = Line(*(Job(name, steps=10_000) for name in clients))

    served = Counter(job.client for _ in range(steps) for job in line.step())

    assert {name: min(count, least[name]) for name, count in served.items()} == least
    assert max(served.values()) <= most


def test_what_is_interactive_goes_first_whoever_asks() -> None:
    line, urgent = Line(*(Job("one", steps=10, priority=Priority.BACKGROUND) for _ in range(32))), Job("two", steps=2)
    line.step()
    line.ask(urgent)

    assert [line.step(), line.step()] == [[urgent], [urgent]]


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
    jobs = [Job(prefill_left=size) for size in left]

    picked = Line(*jobs, unit=unit).pick()

    assert [job.prefill_rows for job in jobs] == rows
    assert picked == [job for job in jobs if job.prefill_rows or not job.prefill_left]


def test_contexts_take_turns_where_a_chunk_is_one_block() -> None:
    first, second, third = (Job(name, prefill_left=size) for name, size in (("a", 640), ("b", 640), ("b", 96)))
    line = Line(first, second, third, unit=32, most=32)

    picked = [line.step() for _ in range(8)]

    assert [len(jobs) for jobs in picked] == [1] * 8
    assert {job.client for job in picked[0] + picked[1]} == {"a", "b"}
    assert first.prefill_left == 640 - 4 * 32
    # The shorter one of b goes first, but not always.
    assert third.prefill_left < 96
    assert second.prefill_left + third.prefill_left == 736 - 4 * 32


class Device:
    """A clock on which every forward takes as long as its rows, at `rate` rows a second, and the reports of them."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.now = 0.0
        self.reports: list[StepReport] = []
        self.later: dict[int, float] = {}  # number of reports to the rate from then on

    def observe(self, report: StepReport) -> None:
        self.now += report.rows / self.rate
        self.reports.append(report)
        self.rate = self.later.get(len(self.reports), self.rate)

    @property
    def waits(self) -> list[float]:
        """How long each forward took in which somebody's context was encoded beside somebody else's step."""
        return [report.rows / self.rate for report in self.reports if report.requests > 1 and report.prefill_rows]


@pytest.fixture
def wide(scripted: Script) -> Any:
    """Has 40,000 positions; its answers never end."""
    model = scripted(0, [7] * 40_000)
    model.config = replace(model.config, max_position_embeddings=40_000)
    return model


def on(device: Device, start: Start, wide: Any, **options: Any) -> Engine:
    return start(wide, clock=lambda: device.now, observe=device.observe, cache_tokens=50_000, **options)


def ask(size: int, answer: int = 1, **options: Any) -> Request:
    return Request(tuple(index % 90 for index in range(size)), answer, canvas_length=1, **options)


@pytest.mark.parametrize(
    ("rate", "later"), [(1000.0, {}), (4000.0, {}), (4000.0, {30: 1000.0})], ids=["slow", "fast", "slower by and by"]
)
def test_a_chunk_is_as_long_as_others_may_wait_for_it(
    wide: Any, start: Start, rate: float, later: dict[int, float]
) -> None:
    device = Device(rate)
    device.later = later
    first, second = on(device, start, wide, prefill_chunk=512, prefill_seconds=0.1).submit_all(
        (ask(32_000), ask(40, 60))
    )
    second.result(60)
    settled = device.waits[-20:]
    first.cancel()

    # 60 canvases of one position each, all of them beside what was encoded of 32,000 tokens
    assert len(device.waits) >= 60
    assert 0.08 <= max(settled) <= 0.105


def test_who_is_alone_gets_whole_chunks_and_the_background_leaves_room_for_who_may_come(
    wide: Any, start: Start
) -> None:
    device = Device(1000.0)
    engine = on(device, start, wide, prefill_chunk=512)

    engine.submit(ask(2000)).result(60)
    assert {report.prefill_rows for report in device.reports} == {512, 2000 % 512, 0}
    device.reports.clear()
    engine.submit(replace(ask(2000), context=(1,) * 2000, priority=Priority.BACKGROUND)).result(60)
    assert max(report.prefill_rows for report in device.reports) <= 100


def test_a_short_context_does_not_wait_for_a_long_one(wide: Any, start: Start) -> None:
    device = Device(5000.0)
    long, short = on(device, start, wide).submit_all((ask(32_000), ask(700)))

    short.result(60)
    long.cancel()
    together = max(index for index, report in enumerate(device.reports) if report.requests > 1)

    assert sum(report.prefill_rows for report in device.reports[: together + 1]) <= 2000


def test_a_short_rest_says_nothing_about_the_speed_and_chunks_are_whole_units() -> None:
    pace = Pace(most=512, seconds=0.1)
    pace.took(512, 0.1)
    pace.took(3, 0.02)
    assert pace.chunk(alone=False) == 512

    pace = Pace(most=512, unit=48, seconds=0.1)
    pace.took(1000, 1.0)
    assert pace.chunk(alone=False) == 96
