"""How many requests the server takes at once.

Beyond the limit a request is refused at once, with a time to come back: a queue that is longer than its clients'
patience computes answers that nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from calomel.server.errors import OverloadedError
from calomel.server.metrics import Metrics


class Admission:
    """Counts the requests that run or wait in the engine. Used from the event loop alone, so it takes no lock."""

    def __init__(self, limit: int, metrics: Metrics) -> None:
        self._limit = limit
        self._metrics = metrics
        self.taken = 0

    @contextmanager
    def place(self, client: str) -> Iterator[None]:
        """One place for as long as the context is open. Raises OverloadedError when all are taken.

        Args:
            client: who asks.
        """
        del client
        if self.taken >= self._limit:
            self._metrics.refused.labels(OverloadedError.code).inc()
            raise OverloadedError
        self.taken += 1
        self._metrics.running.inc()
        try:
            yield
        finally:
            self.taken -= 1
            self._metrics.running.dec()
