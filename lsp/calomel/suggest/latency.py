"""How long answers take, as far as anybody asks."""

from __future__ import annotations

from collections import deque
from typing import Final

_REMEMBERED: Final = 256


class Latency:
    """Seconds of the last answers."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=_REMEMBERED)

    def add(self, seconds: float) -> None:
        """One answer took so long."""
        self._seconds.append(seconds)

    def quantile(self, share: float) -> float | None:
        """The smallest time that at least `share` of the answers did not exceed; None before the first."""
        if not self._seconds:
            return None
        ordered = sorted(self._seconds)
        return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]
