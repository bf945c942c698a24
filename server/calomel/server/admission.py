"""How many requests the server takes at once.

Beyond the limit a request is refused at once, with a time to come back: a queue that is longer than its clients'
patience computes answers that nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from calomel.server.errors import OverloadedError


class Admission:
    """Counts the requests that run or wait in the engine. Used from the event loop alone, so it takes no lock."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.taken = 0

    @contextmanager
    def place(self) -> Iterator[None]:
        """One place for as long as the context is open. Raises OverloadedError when all are taken."""
        if self.taken >= self._limit:
            raise OverloadedError
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
