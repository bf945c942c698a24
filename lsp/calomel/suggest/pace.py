"""When a question is asked: after a pause in the typing, not while suggestions are unwelcome, and one at a time."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final, TypeVar

from calomel.suggest.cache import Entry
from calomel.suggest.completer import Kind
from calomel.suggest.edit import Answer
from calomel.suggest.silence import Silence, SilenceReason
from calomel.workspace.documents import TextChange

T = TypeVar("T")

# A longer gap is a pause for thought, not a rhythm.
LONGEST_GAP: Final = 1.5
# The wait before anything is known; the median gap of a recorded 92-minute session was 0.134 s.
FIRST_GAP: Final = 0.13
SHORTEST_WAIT: Final = 0.03
LONGEST_WAIT: Final = 1.0
# Multiples of the usual gap: a key that is this late probably does not come. Tabby's clients use 1.5 to 3.
_RATE_AT_BREAK: Final = 1.2
_RATE_IN_WORD: Final = 1.8
_REMEMBERED: Final = 24
_BREAKS: Final = frozenset(" \t\r\n([{.,:;=<>+-*/%&|!\"'`")


class Debounce:
    """The rhythm of one user's keys, and the wait that follows from it.

    The wait is a multiple of the usual gap between keys, less at a place where words begin than within one, minus what
    the model usually takes: an answer that comes while the next key is overdue disturbs nobody.
    """

    def __init__(self, clock: Callable[[], float], fixed: float | None = None) -> None:
        """`fixed`: seconds that the user set; None to learn."""
        self.fixed = fixed
        self._clock = clock
        self._gaps: deque[float] = deque(maxlen=_REMEMBERED)
        self._last_key: float | None = None

    def key(self) -> None:
        """The user typed something just now."""
        now = self._clock()
        if self._last_key is not None and 0.0 < now - self._last_key <= LONGEST_GAP:
            self._gaps.append(now - self._last_key)
        self._last_key = now

    def wait(self, before: str, latency: float, patience: float = 1.0) -> float:
        """Seconds to wait from now on.

        Args:
            before: the character before the cursor, or nothing.
            latency: seconds that an answer usually takes.
            patience: more than one after rejections.
        """
        if self._last_key is None:
            return 0.0
        if self.fixed is not None:
            whole = self.fixed
        else:
            rate = _RATE_AT_BREAK if not before or before in _BREAKS else _RATE_IN_WORD
            gap = min(max(median(self._gaps) if self._gaps else FIRST_GAP, 0.05), 0.4)
            whole = min(max((rate * gap - latency) * patience, SHORTEST_WAIT), LONGEST_WAIT)
        return max(0.0, self._last_key + whole - self._clock())


# The weights, the memory of ten decisions and its fading over ten minutes are those of Copilot's next edits.
_REJECTED: Final = 1.5
_ACCEPTED: Final = 0.8
_REJECTIONS_REMEMBERED: Final = 10
_FADING: Final = 600.0
# From the third rejection in a row on there is a pause, each longer than the one before.
_PATIENT: Final = 3
_FIRST_PAUSE: Final = 5.0
_LONGEST_PAUSE: Final = 60.0


class Cooldown:
    """What follows from the last decisions of the user."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._decisions: deque[tuple[float, bool]] = deque(maxlen=_REJECTIONS_REMEMBERED)
        self._in_a_row = 0
        self._until = -math.inf

    def accepted(self) -> None:
        """The user took a suggestion, or part of it: all is well again."""
        self._decisions.append((self._clock(), True))
        self._in_a_row = 0
        self._until = -math.inf

    def rejected(self) -> None:
        """The user dismissed a suggestion."""
        now = self._clock()
        self._decisions.append((now, False))
        self._in_a_row += 1
        if self._in_a_row >= _PATIENT:
            self._until = now + min(_FIRST_PAUSE * 2.0 ** (self._in_a_row - _PATIENT), _LONGEST_PAUSE)

    @property
    def left(self) -> float:
        """Seconds of the pause that are left; 0 when there is none."""
        return max(0.0, self._until - self._clock())

    @property
    def patience(self) -> float:
        """What to multiply waits by; 1 for a user who decided nothing lately."""
        now = self._clock()
        product = 1.0
        for when, accepted in self._decisions:
            weight = _ACCEPTED if accepted else _REJECTED
            product *= 1.0 + (weight - 1.0) * math.exp((when - now) / _FADING)
        return product

    @property
    def counts(self) -> tuple[int, int]:
        """How many of the last ten decisions accepted, and how many rejected."""
        accepted = sum(taken for _, taken in self._decisions)
        return accepted, len(self._decisions) - accepted


_ANSWERS_REMEMBERED: Final = 256


class Latency:
    """Seconds of the last answers."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=_ANSWERS_REMEMBERED)

    def add(self, seconds: float) -> None:
        """One answer took so long."""
        self._seconds.append(seconds)

    def quantile(self, share: float) -> float | None:
        """The smallest time that at least `share` of the answers did not exceed; None before the first."""
        if not self._seconds:
            return None
        ordered = sorted(self._seconds)
        return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


@dataclass(eq=False, slots=True)
class Run:
    """Work for one question, which may outlive it.

    Attributes:
        kind: of the question.
        uri: of the document that it is about.
        owner: the task of the question that it is for now.
        changes: of that document since it began.
        task: ends with what is found.
    """

    kind: Kind
    uri: str
    owner: asyncio.Task[Answer] | None
    changes: list[TextChange] = field(default_factory=list)
    task: asyncio.Task[Entry | Silence] = field(init=False)


class SingleFlight:
    """At most one question to the model at a time for each editor, and at most one waiting of each kind.

    A newer question takes the place of the older one of its kind, whose asker is told so at once. The older one's work
    goes on only while the newer one waits for the typing to pause: if the answer comes in that time and still fits, it
    serves.
    """

    def __init__(self) -> None:
        self._run: Run | None = None
        self._asking: dict[Kind, asyncio.Task[Answer]] = {}

    @property
    def running(self) -> Run | None:
        """The work that goes on now."""
        return None if self._run is None or self._run.task.done() else self._run

    @property
    def inherited(self) -> asyncio.Task[Entry | Silence] | None:
        """The work that goes on for the question of this task."""
        run = self.running
        return run.task if run is not None and run.owner is asyncio.current_task() else None

    async def answer(self, kind: Kind, uri: str, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Do `work` unless a newer question of this kind comes; cancelling this cancels the work and what it runs."""
        task = asyncio.ensure_future(work)
        previous, run = self._asking.get(kind), self.running
        self._asking[kind] = task
        if previous is not None:
            if run is not None and run.owner is previous and run.uri == uri:
                run.owner = task
            previous.cancel()
        try:
            await asyncio.wait({task})
            return Silence.of(SilenceReason.SUPERSEDED) if task.cancelled() else task.result()
        finally:
            await ended(task)
            if self._asking.get(kind) is task:
                del self._asking[kind]
            if self.running is not None and self.running.owner is task:
                self.running.task.cancel()

    async def run(
        self, kind: Kind, uri: str, work: Callable[[Run], Coroutine[Any, Any, Entry | Silence]], *, now: bool
    ) -> Entry | Silence:
        """What `work` finds, as soon as nothing else runs.

        `now` does not wait for a question of another kind.
        """
        owner: Any = asyncio.current_task()
        while (other := self.running) is not None:
            if now or other.owner is owner or other.kind == kind or other.changes:
                other.task.cancel()
            await asyncio.wait({other.task})
        run = self._run = Run(kind, uri, owner)
        run.task = asyncio.ensure_future(work(run))
        await asyncio.wait({run.task})
        return Silence.of(SilenceReason.SUPERSEDED) if run.task.cancelled() else run.task.result()

    async def aclose(self) -> None:
        """Supersede everything and wait until nothing runs."""
        for task in list(self._asking.values()):
            task.cancel()
        if self.running is not None:
            await ended(self.running.task)


async def ended(task: asyncio.Future[Any]) -> None:
    """Cancel a task unless it is done, and wait until it has ended, however it ends."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # asked for, so that nobody complains that it was not


async def within(work: Coroutine[Any, Any, T], timer: Awaitable[None]) -> T:
    """What `work` returns, unless `timer` ends before: TimeoutError then. Cancelling reaches both."""
    task, until = asyncio.ensure_future(work), asyncio.ensure_future(timer)
    try:
        await asyncio.wait({task, until}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        await ended(task)
        await ended(until)
