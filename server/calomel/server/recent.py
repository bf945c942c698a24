"""What the server answered in the last minutes, as numbers, for its status page; and, where asked for, as canvases.

An entry holds no text. A recording does: canvases are kept in memory alone, bounded, and only for a server that was
started with `record_denoising`.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from calomel.server.metrics import Spent
from calomel.suggest.canvas_text import CanvasText

WINDOW_SECONDS: Final = 60.0
# A page shows less; a burst of more than so many answers a minute is described by its newest.
_KEPT: Final = 2048
# Characters of all recordings together, and their number: minutes of a person's work.
_RECORDED_CHARACTERS: Final = 4 * 1024 * 1024
_RECORDINGS: Final = 256


@dataclass(frozen=True, slots=True)
class Entry:
    """One answer.

    Attributes:
        id: of the completion.
        at: seconds since 1970 when it was answered.
        route: its short name.
        spent: what it took; `spent.finish` says how it ended, and for an edit whether it was shown.
    """

    id: str
    at: float
    route: str
    spent: Spent


@dataclass(frozen=True, slots=True)
class Pace:
    """What a minute's answers say.

    Attributes:
        seconds: that are looked back on: a minute, or less at the start.
        answers: in these seconds.
        tokens: of these answers.
        milliseconds: of each of them, sorted.
        by_second: answers in each second, oldest first; the last one is complete.
    """

    seconds: float
    answers: int
    tokens: int
    milliseconds: tuple[float, ...]
    by_second: tuple[int, ...]

    def percentile(self, percent: float) -> float | None:
        """Milliseconds that so many in a hundred answers took at most; None without answers."""
        if not self.milliseconds:
            return None
        last = len(self.milliseconds) - 1
        return self.milliseconds[min(last, int(len(self.milliseconds) * percent / 100))]


class Recent:
    """The newest answers. Used from the event loop alone.

    Args:
        clock: seconds, monotonic.
        now: seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._now = now
        self.began = clock()
        self._entries: deque[tuple[float, Entry]] = deque(maxlen=_KEPT)
        self._recordings: OrderedDict[str, tuple[CanvasText, ...]] = OrderedDict()
        self._characters = 0

    @property
    def uptime(self) -> float:
        """Seconds since the server began."""
        return self._clock() - self.began

    def add(self, completion_id: str, route: str, spent: Spent, canvases: Sequence[CanvasText] = ()) -> None:
        """Keep one answer, and its canvases if there are any."""
        self._entries.append((self._clock(), Entry(completion_id, self._now(), route, spent)))
        if not canvases:
            return
        self._recordings[completion_id] = tuple(canvases)
        self._characters += _characters(canvases)
        while self._recordings and (len(self._recordings) > _RECORDINGS or self._characters > _RECORDED_CHARACTERS):
            self._characters -= _characters(self._recordings.popitem(last=False)[1])

    def entries(self, limit: int) -> tuple[Entry, ...]:
        """The newest ones, newest first."""
        newest = list(self._entries)[-limit:] if limit > 0 else []
        return tuple(entry for _, entry in reversed(newest))

    def recorded(self, completion_id: str) -> bool:
        """Whether there is a recording."""
        return completion_id in self._recordings

    def recording(self, completion_id: str) -> tuple[CanvasText, ...] | None:
        """The canvases of an answer, first to last; None when they were not kept, or no longer."""
        return self._recordings.get(completion_id)

    def pace(self) -> Pace:
        """The last minute."""
        now = self._clock()
        seconds = min(WINDOW_SECONDS, max(1.0, now - self.began))
        newest = [(at, entry) for at, entry in self._entries if at > now - seconds]
        # The second that is not over would always look slow.
        by_second = [0] * int(seconds)
        for at, _ in newest:
            back = int(now) - int(at)
            if 1 <= back <= len(by_second):
                by_second[-back] += 1
        return Pace(
            seconds=seconds,
            answers=len(newest),
            tokens=sum(entry.spent.completion_tokens for _, entry in newest),
            milliseconds=tuple(sorted(entry.spent.seconds * 1e3 for _, entry in newest)),
            by_second=tuple(by_second),
        )


def _characters(canvases: Sequence[CanvasText]) -> int:
    return sum(len(canvas.text) + sum(map(len, canvas.pieces)) for canvas in canvases)
