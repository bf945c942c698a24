"""Ends a server that nobody uses: one that editor windows started and share. Or gives its model's memory back.

A server is in use while a request is being answered, and for a while after the last one. An editor that is open without
being typed in asks for nothing; when it does again, its side starts another server within seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from calomel.server.admission import Admission
from calomel.server.loading import ModelLoader

_CHECK_SECONDS: Final = 1.0


class Idleness:
    """Counts requests in progress, and remembers when the last one ended. Used from the event loop alone."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._running = 0
        self._since = clock()

    def begin(self) -> None:
        """A request came in."""
        self._running += 1

    def end(self) -> None:
        """A request was answered, or its client went."""
        self._running -= 1
        self._since = self._clock()

    @property
    def over(self) -> bool:
        """Whether nobody has used the server for its time."""
        return self._running == 0 and self._clock() - self._since >= self._seconds

    async def wait(self) -> None:
        """Return when it is over."""
        while not self.over:  # noqa: ASYNC110 (time passes; no event tells of it)
            await asyncio.sleep(min(_CHECK_SECONDS, self._seconds / 4))


class CountRequests:
    """ASGI middleware; goes around all others: a refused request shows that somebody is there, too."""

    def __init__(self, app: ASGIApp, idleness: Idleness) -> None:
        self._app = app
        self._idleness = idleness

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._idleness.begin()
        try:
            await self._app(scope, receive, send)
        finally:
            self._idleness.end()


async def unload_when_idle(
    loader: ModelLoader, admission: Admission, minutes: float | None, clock: Callable[[], float] = time.monotonic
) -> None:
    """Watch for as long as the task lives; None minutes: do nothing."""
    if minutes is None:
        return
    seconds = minutes * 60
    while True:
        await asyncio.sleep(min(_CHECK_SECONDS, seconds / 4))
        last = max(loader.ready_at, admission.last)
        if loader.state == "ready" and not admission.taken and clock() - last >= seconds:
            await loader.unload()
