"""Less eagerness towards a user who keeps rejecting: longer waits first, then pauses."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Final

# The weights, the memory of ten decisions and its fading over ten minutes are those of Copilot's next edits.
_REJECTED: Final = 1.5
_ACCEPTED: Final = 0.8
_REMEMBERED: Final = 10
_FADING: Final = 600.0
# From the third rejection in a row on there is a pause, each longer than the one before.
_PATIENT: Final = 3
_FIRST_PAUSE: Final = 5.0
_LONGEST_PAUSE: Final = 60.0


class Cooldown:
    """What follows from the last decisions of the user."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._decisions: deque[tuple[float, bool]] = deque(maxlen=_REMEMBERED)
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
