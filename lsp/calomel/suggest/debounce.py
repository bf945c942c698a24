"""How long to wait after a keystroke before a model is asked, learned from how the user types."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Final

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

    @property
    def usual_gap(self) -> float:
        """Seconds between two keys, as usual."""
        return median(self._gaps) if self._gaps else FIRST_GAP

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
            gap = min(max(self.usual_gap, 0.05), 0.4)
            whole = min(max((rate * gap - latency) * patience, SHORTEST_WAIT), LONGEST_WAIT)
        return max(0.0, self._last_key + whole - self._clock())
