"""The log's clock for code that waits: nothing sleeps, time jumps to whatever comes next.

Only a model computes in real time. While it does, the log's clock stops, or, when latency is measured, runs along with
the real one, so that a key that the person hit before the answer arrived comes before the answer.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeVar

from calomel.infer.completer import Candidate, CompleteAnswer, Completer, CompleteRequest, ModelInfo
from calomel.suggest.judging import Judged


class Decisions:
    """Remembers what a suggestion filter decided, as its `watch`."""

    def __init__(self) -> None:
        self.all: list[Judged] = []

    def __call__(self, decision: Judged) -> None:
        """Record one decision."""
        self.all.append(decision)

    def surest(self, since: int = 0) -> Judged | None:
        """The surest of the decisions after the first `since`: one question may have several candidates."""
        return max(self.all[since:], key=lambda each: each.probability, default=None)

    def about(self, candidate: Candidate) -> Judged | None:
        """The decision about a candidate."""
        return next((each for each in reversed(self.all) if each.candidate is candidate), None)


@dataclass(frozen=True, slots=True)
class Answered:
    """One question that the model answered: seconds, prompt tokens that it encoded, and those that were cached.

    `makers`: of candidates that would change something. `steps`, `rows`: what the engine did for it, where it counts
    them; for a cancelled question, as far as it got.
    """

    seconds: float
    computed_tokens: int
    cached_tokens: int
    makers: frozenset[str] = frozenset()
    steps: int = 0
    rows: int = 0


class TimedCompleter:
    """A `Completer` whose answers arrive on the log's clock.

    Args:
        inner: the model.
        log_time: of the log.
        latency: seconds per answer; None for those that it really takes.
    """

    address: str | None = None

    def __init__(self, inner: Completer, log_time: LogTime, latency: float | None) -> None:
        self.asked = 0
        self.answered: list[Answered] = []
        self._inner = inner
        self._time = log_time
        self._latency = latency

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question. Raises CompleterError."""
        self.asked += 1
        if self._latency is not None:
            # A request cancelled meanwhile costs nothing. A slow machine must not change results at a fixed latency.
            request = replace(request, deadline=None)
            await self._time.sleep(self._latency)
        began, (steps, rows) = self._time.now, self._done
        answer: CompleteAnswer | None = None
        try:
            answer = await self._time.compute(self._inner.complete(request))
        finally:
            done = self._done[0] - steps, self._done[1] - rows
            seconds = self._time.now - began
            if answer is None:
                self.answered.append(Answered(seconds, 0, 0, frozenset(), *done))
        computed = max(0, answer.context_tokens - answer.cached_tokens)
        seconds = seconds if self._latency is None else self._latency
        region = request.parts.region
        as_it_is = "" if region is None else region.text
        makers = frozenset(candidate.maker for candidate in answer.candidates if candidate.text != as_it_is)
        self.answered.append(Answered(seconds, computed, answer.cached_tokens, makers, *done))
        return answer

    async def info(self) -> ModelInfo:
        """Describes the model."""
        return await self._inner.info()

    async def aclose(self) -> None:
        """Do nothing: whoever opened the model closes it."""

    @property
    def _done(self) -> tuple[int, int]:
        """Steps of the engine so far, and rows of its forwards; zeros where it does not count."""
        work = getattr(self._inner, "work", None)
        return (0, 0) if work is None else (work.steps, work.rows)


_T = TypeVar("_T")

# A working model answers long before this; one that hangs must not hang the replay.
_PATIENCE: Final = 120.0


class CountingLoop(asyncio.SelectorEventLoop):
    """An event loop that counts its scheduled callbacks and its work in threads.

    This shows when everything has come to rest.
    """

    def __init__(self) -> None:
        """Start with both counts at zero."""
        super().__init__()
        self.calls = 0
        self.in_threads: set[asyncio.Future[Any]] = set()

    def call_soon(self, *args: Any, **kwargs: Any) -> asyncio.Handle:  # type: ignore[override]
        """As the base class does."""
        self.calls += 1
        return super().call_soon(*args, **kwargs)

    def run_in_executor(self, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """As the base class does."""
        future: asyncio.Future[Any] = super().run_in_executor(*args)
        self.in_threads.add(future)
        future.add_done_callback(self.in_threads.discard)
        return future


class StuckError(Exception):
    """The model, or a thread, does not answer."""


class _Began(NamedTuple):
    """When a computation began, by the log's clock and by the real one."""

    log: float
    wall: float


class LogTime:
    """Seconds of a log. `clock` and `sleep` are what the code under replay gets in place of the real ones."""

    def __init__(self, *, flows: bool) -> None:
        """`flows`: real computation takes the same time on the log's clock."""
        self.now = 0.0
        self._flows = flows
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._computing: dict[asyncio.Future[Any], _Began] = {}

    def clock(self) -> float:
        """Now."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Return when the log's clock has advanced by this much."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + max(0.0, seconds), next(self._order), future))
        await future

    async def compute(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do real work; cancelling this cancels it. Returns when the log's clock has reached its end, too."""
        task = asyncio.ensure_future(work)
        began = _Began(self.now, time.monotonic())
        ended: list[float] = []
        self._computing[task] = began

        def done(task: asyncio.Future[Any]) -> None:
            ended.append(time.monotonic())
            self._computing.pop(task, None)

        task.add_done_callback(done)
        result = await task
        if self._flows:
            took = (ended[0] if ended else time.monotonic()) - began.wall
            await self.sleep(began.log + took - self.now)
        return result

    async def run_to(self, when: float) -> None:
        """Run everything that is due until `when`. Raises StuckError."""
        while True:
            await settled()
            while self._sleepers and self._sleepers[0][2].done():
                heapq.heappop(self._sleepers)
            due = min(self._sleepers[0][0], when) if self._sleepers else when
            if self._computing and await self._computed(due):
                continue
            self.now = max(self.now, due)
            if self._sleepers and self._sleepers[0][0] <= self.now:
                heapq.heappop(self._sleepers)[2].set_result(None)
            elif self.now >= when:
                return

    async def finish(self, task: asyncio.Task[Any]) -> None:
        """Advance time until the task is done. Raises StuckError when nothing is left that it could wait for."""
        await settled()
        while not task.done():
            if not (self._computing or self._sleepers):
                raise StuckError("The replay is stuck waiting for something that never happens. Please report this.")
            await self.run_to(self._sleepers[0][0] if self._sleepers else self.now + _PATIENCE)

    async def _computed(self, due: float) -> bool:
        """Wait for real work; returns whether some finished before the log's clock reached `due`."""
        room = _PATIENCE
        if self._flows:
            wall = time.monotonic()
            room = max(0.0, min(due - began.log - (wall - began.wall) for began in self._computing.values()))
        done, _ = await asyncio.wait(set(self._computing), timeout=room, return_when=asyncio.FIRST_COMPLETED)
        if not done and not self._flows:
            raise StuckError(f"The model gave no answer within {_PATIENCE:.0f} s.")
        return bool(done)


async def settled() -> None:
    """Run everything that can run without time advancing, in threads too. Raises StuckError."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, CountingLoop):
        raise TypeError("a replay runs in a CountingLoop")
    while True:
        before = loop.calls
        await asyncio.sleep(0)
        if loop.calls - before > 1:
            continue
        if not loop.in_threads:
            return
        done, _ = await asyncio.wait(loop.in_threads, timeout=_PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise StuckError(f"A thread has worked for more than {_PATIENCE:.0f} s.")


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """`asyncio.run` in a loop that can be waited for."""
    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        return runner.run(main)
