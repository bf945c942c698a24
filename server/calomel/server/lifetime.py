"""The server as uvicorn runs it: how it listens, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

import uvicorn

from calomel.server.app_state import ModelLoader
from calomel.server.middleware import Admission
from calomel.storage import ENDING, give_back_memory

_log = logging.getLogger("calomel.server")

_DRAIN_SECONDS: Final = 0.02
_REST_SECONDS: Final = 60.0
# Connections that wait in the system, which has its own limit, until they are accepted.
_WAITING: Final = 4096


class DrainingServer(uvicorn.Server):
    """Ends by itself when idle or when its model has failed, and drains when told to stop.

    A server without a model is useless; whoever started it should see it end. When nobody has asked for a minute, it
    gives back the memory that it does not need.

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
        self._rests = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. uvicorn's `backlog` is only how many connections are accepted before anything else has its turn."""
        await super().startup(sockets)
        for each in sockets or []:
            each.listen(_WAITING)

    async def on_tick(self, counter: int) -> bool:
        """Whether to end: it was told to, its model has failed, or it has been idle for too long."""
        state, now = self.server_state, self._clock()
        if state.tasks or state.total_requests != self._answered:
            self._answered, self._since, self._rests = state.total_requests, now, False
        idle = now - self._since
        if idle >= _REST_SECONDS and not self._rests:
            self._rests = True
            await asyncio.to_thread(give_back_memory)
        if self._idle_seconds is not None and idle >= self._idle_seconds:
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
