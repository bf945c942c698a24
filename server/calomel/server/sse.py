"""Server-sent events as the published API frames them: `data: JSON`, a blank line, and `data: [DONE]` at the end.

No comment lines are ever sent: a shipping client drops everything that arrives together with one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from pydantic import BaseModel
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

DONE = b"data: [DONE]\n\n"


def event(data: BaseModel) -> bytes:
    """One event."""
    return b"data: " + data.model_dump_json().encode() + b"\n\n"


class EventStream(StreamingResponse):
    """A stream of events that always runs `close` in the end, also when the client left before the first one."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], close: Callable[[], Awaitable[Any]]) -> None:
        # Proxies (nginx) hold a stream back until it is complete unless they are told not to.
        super().__init__(events, headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until they end or the client leaves."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._close()
