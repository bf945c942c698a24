"""The server as uvicorn runs it: time limits of connections, and how the server ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from types import FrameType
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from calomel.server.app_state import ModelLoader
from calomel.server.errors import RETRY_OVERLOAD, OverloadedError, shape
from calomel.server.middleware import Admission
from calomel.storage import ENDING

_log = logging.getLogger("calomel.server")

_DRAIN_SECONDS: Final = 0.02


class DrainingServer(uvicorn.Server):
    """Ends by itself when idle or when its model has failed, and drains when told to stop.

    A server without a model is useless; whoever started it should see it end.

    While requests still run, it answers: `/health` says `draining`, all other requests are told to retry.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        admission: Admission,
        loader: ModelLoader,
        idle_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(config)
        self._admission = admission
        self._loader = loader
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._answered = 0
        self._since = clock()

    async def on_tick(self, counter: int) -> bool:
        """Whether to end: it was told to, its model has failed, or it has been idle for too long."""
        state, now = self.server_state, self._clock()
        if state.tasks or state.total_requests != self._answered:
            self._answered, self._since = state.total_requests, now
        elif self._idle_seconds is not None and now - self._since >= self._idle_seconds:
            _log.info("the server was idle for too long and stops")
            self.should_exit = True
        if self._loader.failure is not None:
            self.should_exit = True
        return await super().on_tick(counter)

    async def main_loop(self) -> None:
        """Serve until it ends; then drain."""
        await super().main_loop()
        await self._drain()

    async def _drain(self) -> None:
        self._admission.draining = True
        until = time.monotonic() + (self.config.timeout_graceful_shutdown or 0)
        if self._admission.taken:
            _log.info("the server stops after answering %d requests", self._admission.taken)
        while self._admission.taken and not self.force_exit and time.monotonic() < until:  # noqa: ASYNC110
            # (The second signal and the time limit come without an event.)
            await asyncio.sleep(_DRAIN_SECONDS)
        left = max(0.0, until - time.monotonic())
        # What remains is only sent, or cut off.
        self.config.timeout_graceful_shutdown = int(left) if self._admission.taken else max(1, int(left))


@contextlib.contextmanager
def ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let SIGTERM, and SIGHUP unless it is ignored (`nohup`), end the server cleanly, also before and after it runs.

    uvicorn handles SIGTERM while it runs and raises it again when it has ended; the system's default handler would
    then end the process before the runtime file is removed.
    """

    def leave(_: int, __: FrameType | None) -> None:
        server.should_exit = True

    def terminate(_: int, __: FrameType | None) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    # `nohup` ignores SIGHUP.
    ending = (number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN)
    handlers = {number: leave if number == signal.SIGTERM else terminate for number in ending}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def waiting_for_no_model(loader: ModelLoader) -> Iterator[None]:
    """End the process after the context if a model is still being opened: no signal reaches its thread."""
    status = 0
    try:
        yield
    except KeyboardInterrupt:
        if not loader.opening:
            raise
        status = 130  # 128 + SIGINT, as shells expect
    if loader.opening:
        # A clean interpreter shutdown would crash a thread in native code.
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


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
        most: connections at once; a further one is told to retry.
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
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD)
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
        """A part of a request arrived."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """A request was answered; the next one may be waiting already."""
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

    def _receive_too_slow(self) -> None:
        self._receiving = None
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


def timed(receive_seconds: float, most: int) -> type[TimedProtocol]:
    """The protocol with these limits, as a class for uvicorn."""
    return type("TimedProtocol", (TimedProtocol,), {"receive_seconds": receive_seconds, "most": most})
