"""How much context a step encodes, so that nobody waits for it longer than a set time.

A step is as long as the slowest of what it does: while a long context is encoded, every other request's next step
waits for the chunk that it shares a forward with. How long a chunk takes depends on the device, the model and the
position, so it is measured, and the next one is cut to fit.
"""

from __future__ import annotations

from typing import Final

# A forward of fewer rows takes hardly less time: weights are read, kernels are launched.
_LEAST: Final = 32
# A single fast step, as one whose keys were all cached, is no reason to make the next one wait.
_GROWTH: Final = 1.5
# Before anything is measured.
_FIRST: Final = 4


class Pace:
    """The size of the next chunk.

    Args:
        most: tokens of a chunk at most.
        unit: chunks are multiples of it, and at least it.
        seconds: others wait so long for a chunk; None for as long as `most` tokens take.
    """

    def __init__(self, *, most: int, unit: int = 1, seconds: float | None) -> None:
        self._most = max(most, unit)
        self._unit = unit
        self._seconds = seconds
        self._rate: float | None = None

    def chunk(self, *, alone: bool) -> int:
        """Tokens of the next chunk; `most` for who is alone: what comes next is mostly behind the same context."""
        if self._seconds is None or alone:
            return self._most
        fitting = self._most / _FIRST if self._rate is None else self._rate * self._seconds
        rows = int(min(self._most, max(fitting, _LEAST)))
        return max(rows - rows % self._unit, self._unit)

    def took(self, rows: int, seconds: float) -> None:
        """A step that encoded `rows` tokens took `seconds`."""
        if not rows or seconds <= 0:
            return
        rate = rows / seconds
        # Slower at once, faster by and by; a short chunk is slower by the row than a long one, and tells less.
        if self._rate is None or rate < self._rate:
            enough = self._rate is None or rows >= _LEAST
            self._rate = rate if enough else self._rate
        else:
            self._rate = min(rate, self._rate * _GROWTH)
