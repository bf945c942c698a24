"""How many requests the server admits at once, from all clients and from each.

Beyond the limits a request is refused at once, with a time to retry: a queue that outlasts its clients' patience
computes answers that nobody reads. A full server answers 503; a client that exceeds its share gets 429, since then it
is the client that should slow down.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from calomel.server.errors import DoorError, DrainingError, OverloadedError, RateLimitError
from calomel.server.metrics import Metrics

# How many clients are remembered; the longest absent one is forgotten, and later starts with a full bucket.
_CLIENTS: Final = 4096


class Rates:
    """A rate limit for each client. Used from the event loop only.

    Args:
        per_minute: how often, in the long run.
        burst: how often at once.
        clock: monotonic seconds.
    """

    def __init__(self, per_minute: float, burst: int, clock: Callable[[], float]) -> None:
        self._per_second = per_minute / 60
        self._burst = float(burst)
        self._clock = clock
        # Per client: the level of its bucket, and when that was.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> float:
        """Count one use. Returns 0, or the seconds until the client may retry, and then counts nothing."""
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
    """Counts the requests that run or wait in the engine. Used from the event loop only, so it takes no lock.

    Args:
        limit: number of places.
        metrics: counts refusals.
        share: the share of the places that one client may hold.

    Attributes:
        taken: places in use.
        draining: no further request is admitted; those that have a place keep it.
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
        """Hold one place while the context is open. Raises DoorError when there is none for this client.

        Args:
            client: the client that asks.
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
