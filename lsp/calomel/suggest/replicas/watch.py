"""Which replicas are up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from calomel.suggest.replicas.errors import LineLostError
from calomel.suggest.replicas.line import Line, ReplicaLook

_log = logging.getLogger("calomel.replicas")

LOOK_SECONDS: Final = 2.0


class Watch:
    """Looks at the replicas now and then, and sooner when one is said to be lost.

    Args:
        line: to them.
        wanted: how many there should be.
        clock: seconds.

    Attributes:
        wanted: the same.
        up: as they were at the last look.
        restarts: replicas that were started in the place of others.
    """

    def __init__(self, line: Line, wanted: int, clock: Callable[[], float]) -> None:
        self.wanted = wanted
        self.up: tuple[ReplicaLook, ...] = ()
        self.restarts = 0
        self._line = line
        self._clock = clock
        self._known: set[str] = set()
        self._down_since: float | None = None
        self._sooner = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Requests that wait for a place in a batch."""
        return sum(look.waiting for look in self.up)

    def suspect(self) -> None:
        """A replica seems to be lost."""
        self._sooner.set()

    def down_for(self, now: float) -> float:
        """Seconds since the last replica was up; 0 while one is."""
        return 0.0 if self._down_since is None else now - self._down_since

    async def look(self) -> None:
        """Look once."""
        try:
            up = tuple(sorted(await self._line.look(), key=lambda look: look.id))
        except LineLostError:
            up = ()
        except TimeoutError:
            # As they were: on a busy machine a look takes long.
            return
        before = {look.id for look in self.up}
        self.up = up
        ids = {look.id for look in up}
        for gone in sorted(before - ids):
            _log.warning("replica %s is gone: %d of %d are up", gone, len(ids), self.wanted)
        for look in up:
            if look.id not in self._known:
                _log.info(
                    "replica %s is up (process %d at %s): %d of %d", look.id, look.pid, look.node, len(ids), self.wanted
                )
        self._known |= ids
        self.restarts = max(0, len(self._known) - self.wanted)
        if ids:
            self._down_since = None
        elif self._down_since is None:
            self._down_since = self._clock()

    async def run(self, looked: Callable[[], None], seconds: float = LOOK_SECONDS) -> None:
        """Look for ever; `looked` is called behind each look."""
        while True:
            await self.look()
            looked()
            try:
                async with asyncio.timeout(seconds):
                    await self._sooner.wait()
                # What is lost is not gone at the same moment.
                await asyncio.sleep(seconds / 4)
            except TimeoutError:
                pass
            self._sooner.clear()
