"""How an answer came in time, and how often it is worth looking at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# Of a longer answer, every so many-th part: looking at it takes the longer the longer it is.
_PART: Final = 32


class Pace:
    """Of one answer. `clock`: seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = clock()
        self._first: float | None = None
        self._length = 0
        self._looked = 0

    def piece(self) -> None:
        """Something came."""
        if self._first is None:
            self._first = self._clock()

    def grown(self, length: int) -> bool:
        """Whether the answer, of `length` tokens, is longer than when this was asked last."""
        grown, self._length = length > self._length, length
        return grown

    def due(self, length: int) -> bool:
        """Whether an answer of `length` tokens is worth asking about."""
        if length < self._looked + max(1, self._looked // _PART):
            return False
        self._looked = length
        return True

    def times(self) -> tuple[float, float]:
        """Seconds until the first piece, and from there until now."""
        now = self._clock()
        first = now if self._first is None else self._first
        return first - self._began, now - first
