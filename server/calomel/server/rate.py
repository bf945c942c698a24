"""How often each of many clients may do something: a bucket for each, which fills up with time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

# Clients that are remembered; whoever has been away longest is forgotten, and begins with a full bucket.
_CLIENTS: Final = 4096


class Rates:
    """Used from the event loop alone.

    Args:
        per_minute: how often, in the long run.
        burst: how often at once.
        clock: seconds, monotonic.
    """

    def __init__(self, per_minute: float, burst: int, clock: Callable[[], float]) -> None:
        self._per_second = per_minute / 60
        self._burst = float(burst)
        self._clock = clock
        # Of each client: what was in its bucket, and when.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> float:
        """Count one. Returns 0, or the seconds until the client may come back, and then counts nothing."""
        level = self._level(client)
        if level < 1:
            return (1 - level) / self._per_second
        self._buckets[client] = (level - 1, self._clock())
        self._buckets.move_to_end(client)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0

    def _level(self, client: str) -> float:
        level, then = self._buckets.get(client, (self._burst, 0.0))
        return min(self._burst, level + (self._clock() - then) * self._per_second)
