"""One connection, as uvicorn serves it: its time limits, its place among the others, and its encryption."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from http import HTTPStatus
from typing import Any, ClassVar, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from calomel.server.errors import RETRY_OVERLOAD, OverloadedError, shape
from calomel.server.middleware import WELCOME

# The share of the places that strangers have, however many others there are: who has a token comes as a stranger, too.
_AT_THE_DOOR: Final = 8


class Places:
    """Who is connected. Whoever has shown a token stays; strangers share the places that are left.

    A stranger too many takes the place of the one that has been there longest. So nobody can fill the places, however
    many connections they hold open: who has a token shows it in the first bytes.

    Args:
        most: connections at once. Beyond them, an eighth as many may be at the door.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._door = max(1, most // _AT_THE_DOOR)
        # Both in the order in which they should go.
        self._strangers: dict[TimedProtocol, None] = {}
        self._known: dict[TimedProtocol, None] = {}

    @property
    def crowded(self) -> bool:
        """Whether strangers have more than half of the places that they may have."""
        return 2 * len(self._strangers) > self._room

    @property
    def _room(self) -> int:
        return max(self._most - len(self._known), self._door)

    def came(self, connection: TimedProtocol) -> None:
        """Somebody connected."""
        self._strangers[connection] = None
        self._make_room()

    def known(self, connection: TimedProtocol) -> None:
        """A connection has shown a token. Raises OverloadedError if all places are taken by such that are busy."""
        if connection not in self._known and len(self._known) >= self._most:
            idle = next((each for each in self._known if each.idle), None)
            if idle is None:
                raise OverloadedError
            del self._known[idle]
            idle.leave()
        self.gone(connection)
        self._known[connection] = None
        self._make_room()

    def is_stranger(self, connection: TimedProtocol) -> bool:
        """Whether a connection has never shown a token."""
        return connection in self._strangers

    def gone(self, connection: TimedProtocol) -> None:
        """A connection has ended."""
        self._strangers.pop(connection, None)
        self._known.pop(connection, None)

    def _make_room(self) -> None:
        while len(self._strangers) > self._room:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.leave()


# In this time a client may read the refusal before its connection is cut.
_LINGER_SECONDS: Final = 1.0
# Bytes that wait in the system for a client to read them. Without a bound it takes megabytes of a stream, and it shows
# late that nobody reads.
_UNREAD: Final = 65_536
# The largest head, if the configuration has no limit.
_MOST_BYTES: Final = 64 * 1024


class _OneLength(h11.Connection):
    """Refuses a request with both a content length and chunks: a proxy may have believed the other one."""

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
        places: of the server.
        tls: encrypts; None for plain HTTP. uvicorn must not be told of it: it would count a connection only after the
            handshake, which may never end.
    """

    receive_seconds: ClassVar[float] = 20.0
    places: ClassVar[Places] = Places(512)
    tls: ClassVar[ssl.SSLContext | None] = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = _OneLength(h11.SERVER, self.config.h11_max_incomplete_event_size or _MOST_BYTES)
        self.app_state = {**self.app_state, WELCOME: lambda: self.places.known(self)}
        self._receiving: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None
        self._securing: asyncio.Task[None] | None = None
        # What came before `super().connection_made`: with the last message of the handshake.
        self._early = b""

    @property
    def idle(self) -> bool:
        """Whether no request is being received or answered."""
        return self._receiving is None and (self.cycle is None or self.cycle.response_complete)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connected."""
        self.transport = transport
        self.connections.add(self)
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD)
        self._receiving = self.loop.call_later(self.receive_seconds, self._receive_too_slow)
        self.places.came(self)
        if self.tls is None:
            super().connection_made(transport)
        elif not transport.is_closing():
            transport.pause_reading()
            self._securing = self.loop.create_task(self._secure(transport, self.tls))

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self.places.gone(self)
        self._stop_receiving()
        self._stop_sending()
        super().connection_lost(exc)

    def leave(self) -> None:
        """End: another one needs the place."""
        if self._is_open and not self.idle:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, OverloadedError().body(), RETRY_OVERLOAD)
        # Nothing waits for a client that does not read, or does not end its encryption.
        self.transport.abort()

    def shutdown(self) -> None:
        """End: the server ends."""
        if self._is_open:
            super().shutdown()
        else:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """A part of a request arrived."""
        if not self._is_open:
            self._early += data
        elif not self.transport.is_closing():
            super().data_received(data)
            self._watch()

    def on_response_complete(self) -> None:
        """A request was answered; the next one may be waiting already."""
        if self.places.is_stranger(self) and (self.places.crowded or self.conn.trailing_data[0]):
            # A crowd that asks for what is public would have the server answer nobody else.
            self.transport.close()
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """The client does not read what it is sent."""
        super().pause_writing()
        if self._sending is None:
            self._sending = self.loop.call_later(self.receive_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        self._stop_sending()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """The input is not HTTP, or its head is too large."""
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

    @property
    def _is_open(self) -> bool:
        """Whether it is encrypted, if it must be."""
        return self.flow is not None

    async def _secure(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        seconds = self.receive_seconds
        try:
            secure = await self.loop.start_tls(
                transport, self, tls, server_side=True, ssl_handshake_timeout=seconds, ssl_shutdown_timeout=seconds
            )
        except OSError:  # a handshake that fails, is too slow, or is given up
            secure = None
        if secure is None or secure.is_closing():
            transport.abort()
            self.connection_lost(None)
            return
        super().connection_made(secure)
        early, self._early = self._early, b""
        if early:
            self.data_received(early)

    def _receive_too_slow(self) -> None:
        self._receiving = None
        if not self._is_open:
            self.transport.abort()
            return
        message = "The request did not arrive in time."
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, shape(message, "invalid_request_error", "request_timeout", None))

    def _refuse(self, status: HTTPStatus, body: dict[str, Any], retry_after: int | None = None) -> None:
        """Answer outside the application, unless it has begun to answer, and close."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            content = json.dumps(body).encode()
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\nconnection: close\r\n"
            if retry_after is not None:
                head += f"retry-after: {retry_after}\r\n"
            self.transport.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
        if self.cycle is not None:
            # The handler must not write after this.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()
        self.loop.call_later(_LINGER_SECONDS, self.transport.abort)


def timed(receive_seconds: float, most: int, tls: ssl.SSLContext | None = None) -> type[TimedProtocol]:
    """The protocol of one server with these limits, as a class for uvicorn."""
    own = {"receive_seconds": receive_seconds, "places": Places(most), "tls": tls}
    return type("TimedProtocol", (TimedProtocol,), own)
