"""How long a connection may take: to send a request, and to take what it is sent.

uvicorn holds a half-sent request forever, and its handlers never hear of it, so no layer inside could end it. This is
its HTTP/1.1 protocol with a clock: a request has to arrive whole within its time, whether it is the first of its
connection or a later one, and a client that stops reading its answer is let go.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from calomel.server.errors import RETRY_OVERLOAD, OverloadedError, shape

# In which a client may take the refusal before its connection is cut.
_LINGER_SECONDS: Final = 1.0
# Of a head, where the configuration names no bound.
_MOST_BYTES: Final = 64 * 1024


class _OneLength(h11.Connection):
    """Refuses a request that is as long as it says and as long as its chunks: a proxy may have believed the other."""

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("content-length and transfer-encoding")
        return event


class TimedProtocol(H11Protocol):
    """One connection.

    Attributes:
        receive_seconds: from the first byte of a request (or the opening of the connection) to its last.
        most: connections at once; one more is told to come back.
    """

    receive_seconds: float = 20.0
    most: int = 512

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = _OneLength(h11.SERVER, self.config.h11_max_incomplete_event_size or _MOST_BYTES)
        self._receiving: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connected."""
        full = len(self.connections) >= self.most
        super().connection_made(transport)
        if full:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, OverloadedError().body(), RETRY_OVERLOAD)
        else:
            self._receiving = self.loop.call_later(self.receive_seconds, self._receive_too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._stop_receiving()
        self._stop_sending()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a request came."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """A request was answered; the next one may wait already."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """The client does not take what it is sent."""
        super().pause_writing()
        if self._sending is None:
            self._sending = self.loop.call_later(self.receive_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It does again."""
        self._stop_sending()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP, or its head is too large."""
        self._refuse(HTTPStatus.BAD_REQUEST, shape(msg, "invalid_request_error", "invalid_request", None))

    def _watch(self) -> None:
        theirs = self.conn.their_state
        began = theirs is h11.SEND_BODY or (theirs is h11.IDLE and bool(self.conn.trailing_data[0]))
        if not began:
            self._stop_receiving()
        elif self._receiving is None:
            self._receiving = self.loop.call_later(self.receive_seconds, self._receive_too_slow)

    def _stop_receiving(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None

    def _stop_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _receive_too_slow(self) -> None:
        self._receiving = None
        message = "The request did not arrive in time."
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, shape(message, "invalid_request_error", "request_timeout", None))

    def _refuse(self, status: HTTPStatus, body: dict[str, Any], retry_after: int | None = None) -> None:
        """Answer outside of the application, unless it has begun to answer, and close."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            content = json.dumps(body).encode()
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\nconnection: close\r\n"
            if retry_after is not None:
                head += f"retry-after: {retry_after}\r\n"
            self.transport.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
        if self.cycle is not None:
            # The handler must not write behind this.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()
        self.loop.call_later(_LINGER_SECONDS, self.transport.abort)


def timed(receive_seconds: float, most: int) -> type[TimedProtocol]:
    """The protocol with these limits, as uvicorn takes it."""
    return type("TimedProtocol", (TimedProtocol,), {"receive_seconds": receive_seconds, "most": most})
