"""Counts every request by route, status and time: the outermost layer, so that refused ones count as well."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calomel.server.metrics import Metrics

# Of requests that no route took: a label that clients could choose would make as many series as they like.
NO_ROUTE: Final = "none"
# Of requests whose client left before an answer began (the number that nginx gave it).
GONE: Final = "499"


class Measured:
    """ASGI middleware; goes around all others.

    Args:
        app: what is inside.
        metrics: where it is counted.
        clock: seconds, monotonic.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._metrics = metrics
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = GONE
        began = self._clock()

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            # The router leaves the route that it chose; its template, never the path that the client sent.
            route = str(getattr(scope.get("route"), "path_format", NO_ROUTE))
            self._metrics.requests.labels(route, status).inc()
            self._metrics.seconds.labels(route).observe(self._clock() - began)
