"""How many requests the server takes at once, of all clients and of each.

Beyond the limits a request is refused at once, with a time to come back: a queue that is longer than its clients'
patience computes answers that nobody reads. A full server says 503; to a client that takes more than its share it says
429, for then it is the client that should slow down.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from calomel.server.errors import DoorError, DrainingError, OverloadedError, RateLimitError
from calomel.server.metrics import Metrics

# Clients that are remembered; whoever has been away longest is forgotten, and begins with a full bucket.
_CLIENTS: Final = 4096


class Rates:
    """How often each client may do something. Used from the event loop alone.

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


class Admission:
    """Counts the requests that run or wait in the engine. Used from the event loop alone, so it takes no lock.

    Args:
        limit: places.
        metrics: counts the refused.
        share: of the places, what one client may hold.

    Attributes:
        taken: places that are in use.
        draining: no further request is taken; those that have a place keep it.
    """

    def __init__(self, limit: int, metrics: Metrics, *, share: float = 1.0) -> None:
        self._limit = limit
        self._each = math.ceil(limit * share)
        self._metrics = metrics
        self._held: Counter[str] = Counter()
        self.taken = 0
        self.draining = False

    @contextmanager
    def place(self, client: str) -> Iterator[None]:
        """One place for as long as the context is open. Raises DoorError when there is none for this client.

        Args:
            client: who asks.
        """
        refusal = self._refusal(client)
        if refusal is not None:
            self._metrics.refused[refusal.code] += 1
            raise refusal
        self.taken += 1
        self._held[client] += 1
        try:
            yield
        finally:
            self.taken -= 1
            self._held[client] -= 1
            if not self._held[client]:
                del self._held[client]

    def _refusal(self, client: str) -> DoorError | None:
        if self.draining:
            return DrainingError()
        if self.taken >= self._limit:
            return OverloadedError()
        if self._held[client] >= self._each:
            return RateLimitError()
        return None
