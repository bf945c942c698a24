"""Starts the server: `calomel serve`."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TextIO

import uvicorn
from pydantic import SecretStr

from calomel.server.app import create_app
from calomel.server.auth import new_token
from calomel.server.errors import StartError
from calomel.server.idle import Idleness
from calomel.server.loading import Filler, FillerFactory
from calomel.server.settings import ServerSettings
from calomel.suggest import runtime_file
from calomel.suggest.completer import PROTOCOL_VERSION
from calomel.suggest.model_info import version
from calomel.suggest.process import started
from calomel.suggest.runtime_file import RuntimeFileError, ServerRecord
from calomel.weights import nano_path
from calomel.weights.identity import weights_id

_log = logging.getLogger("calomel.server")

# Headers are kept in memory until they are complete; 64 KiB is eight times what browsers send at most.
_MAX_HEADER_BYTES = 64 * 1024
# An editor asks again within seconds while its user types; longer-lived idle sockets are of no use.
_KEEP_ALIVE_SECONDS = 60


def serve(settings: ServerSettings, out: TextIO = sys.stdout) -> None:
    """Serve until the process is told to stop (SIGINT, SIGTERM).

    The address, and a token that was made up at this start, are written to `out` once, and to the runtime file.

    Raises:
        StartError: the address is taken, the runtime file cannot be written, or the model cannot be loaded.
    """
    made_up = settings.token is None and not settings.no_auth
    if made_up:
        settings = settings.model_copy(update={"token": SecretStr(new_token())})
    failures: list[Exception] = []

    def open_model() -> Filler:
        try:
            from calomel.suggest.fill import open_filler

            return open_filler(settings.model, settings.device, settings.threads)
        except Exception as error:
            failures.append(error)
            # A server without a model helps nobody; whoever started it should see it end.
            server.should_exit = True
            raise

    _log_to_stderr(settings.log_level)
    idleness = None if settings.idle_minutes is None else Idleness(settings.idle_minutes * 60)
    server = _Server(_config(settings, open_model, idleness), idleness)
    with listen(settings.host, settings.port) as listener:
        url = address(listener)
        token = None if settings.token is None or settings.no_auth else settings.token.get_secret_value()
        path = settings.runtime_file or runtime_file.default_path()
        with _terminated_as_interrupted(), _published(path, _record(settings, url, token)):
            out.write(f"Calomel listens on {url}\n")
            out.write(f"Token: {token} (also in {path})\n" if made_up else f"Runtime file: {path}\n")
            out.flush()
            server.run(sockets=[listener])
    if failures:
        raise StartError(f"the model could not be loaded: {failures[0]}") from failures[0]


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises StartError when the address is taken or is none of this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        hint = ": is another server running? Choose another port, 0 for any" if error.errno == errno.EADDRINUSE else ""
        raise StartError(f"cannot listen on {host} port {port} ({error.strerror}){hint}") from error
    # Accepted connections inherit it; asyncio sets it only where the socket names its protocol. Without it the body of
    # each answer waits 40 ms for the acknowledgement of its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """Ends by itself when nobody uses it."""

    def __init__(self, config: uvicorn.Config, idleness: Idleness | None) -> None:
        super().__init__(config)
        self._idleness = idleness

    async def main_loop(self) -> None:
        """Serve until told to stop, or until the server has been idle for its time."""
        if self._idleness is None:
            await super().main_loop()
            return
        watch = asyncio.create_task(self._idleness.wait())
        watch.add_done_callback(self._leave)
        try:
            await super().main_loop()
        finally:
            watch.cancel()

    def _leave(self, watch: asyncio.Task[None]) -> None:
        if not watch.cancelled():
            _log.info("nobody has used the server for its time: it ends")
            self.should_exit = True


@contextlib.contextmanager
def _published(path: Path, record: ServerRecord) -> Iterator[None]:
    try:
        with runtime_file.published(path, record):
            yield
    except RuntimeFileError as error:
        raise StartError(str(error)) from error


def _record(settings: ServerSettings, url: str, token: str | None) -> ServerRecord:
    pid = os.getpid()
    try:
        weights = weights_id(settings.model or nano_path())
    except OSError:
        # The loader says what is wrong with the folder.
        weights = ""
    model = None if settings.model is None else str(settings.model.resolve())
    return ServerRecord(url, token, pid, started(pid), model, weights, settings.device, version(), PROTOCOL_VERSION)


def _config(settings: ServerSettings, open_model: FillerFactory, idleness: Idleness | None) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(settings, open_model, idleness),
        # httptools takes headers of any size; h11 refuses them at the limit below.
        http="h11",
        h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
        loop="asyncio",
        ws="none",
        lifespan="on",
        # One line a fill is logged by the route, with counts in place of the client's words.
        access_log=False,
        log_level="warning",
        # The client's address is the socket's: no header may claim another.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )


def _log_to_stderr(level: str) -> None:
    logger = logging.getLogger("calomel")
    logger.setLevel(level.upper())
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Turn SIGTERM into SystemExit.

    uvicorn handles the signal while it runs and raises it once more when it has ended; the system's own handler would
    then end the process before the runtime file is removed.
    """

    def leave(_: int, __: FrameType | None) -> None:
        raise SystemExit(0)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
