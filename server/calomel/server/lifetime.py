"""How a server ends: told to, or because nobody uses it; what it has begun, it finishes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Final

import uvicorn

from calomel.server.admission import Admission
from calomel.server.idle import Idleness
from calomel.server.loading import ModelLoader

_log = logging.getLogger("calomel.server")

_CHECK_SECONDS: Final = 0.02


class DrainingServer(uvicorn.Server):
    """Ends by itself when nobody uses it, and lets running requests end when it is told to stop.

    While they do, it still answers: `/health` says `draining`, whatever else comes is told to come back.
    """

    def __init__(self, config: uvicorn.Config, admission: Admission, idleness: Idleness | None, seconds: float) -> None:
        super().__init__(config)
        self._admission = admission
        self._idleness = idleness
        self._seconds = seconds

    async def main_loop(self) -> None:
        """Serve until told to stop, or until the server has been idle for its time; then drain."""
        watch = None
        if self._idleness is not None:
            watch = asyncio.create_task(self._idleness.wait())
            watch.add_done_callback(self._leave)
        try:
            await super().main_loop()
            await self._drain()
        finally:
            if watch is not None:
                watch.cancel()

    async def _drain(self) -> None:
        self._admission.draining = True
        until = time.monotonic() + self._seconds
        if self._admission.taken:
            _log.info("the server ends when %d requests are answered", self._admission.taken)
        while self._admission.taken and not self.force_exit and time.monotonic() < until:  # noqa: ASYNC110
            # (The second signal and the time tell of themselves by no event.)
            await asyncio.sleep(_CHECK_SECONDS)
        left = max(0.0, until - time.monotonic())
        # What remains is only written out, or cut.
        self.config.timeout_graceful_shutdown = int(left) if self._admission.taken else max(1, int(left))

    def _leave(self, watch: asyncio.Task[None]) -> None:
        if not watch.cancelled():
            _log.info("nobody has used the server for its time: it ends")
            self.should_exit = True


@contextlib.contextmanager
def ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let SIGTERM, and SIGHUP unless it is ignored (`nohup`), end the server in order, also before and after it runs.

    uvicorn handles SIGTERM while it runs and raises it once more when it has ended; the system's own handler would
    then end the process before the runtime file is removed.
    """

    def leave(_: int, __: FrameType | None) -> None:
        server.should_exit = True

    def terminate(_: int, __: FrameType | None) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    handlers = {signal.SIGTERM: leave, signal.SIGHUP: terminate}
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        del handlers[signal.SIGHUP]
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def waiting_for_no_model(loader: ModelLoader) -> Iterator[None]:
    """End the process behind the context where a model is still being opened: no signal reaches a thread that loads."""
    status = 0
    try:
        yield
    except KeyboardInterrupt:
        if not loader.opening:
            raise
        status = 130  # 128 + SIGINT, as shells expect
    if loader.opening:
        # An interpreter that ends in order pulls the ground from under a thread in native code.
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
