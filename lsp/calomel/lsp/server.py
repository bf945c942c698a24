"""The language server as a program: greet the client at once, then bring in everything else."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from calomel.lsp.connection import Door
from calomel.lsp.transport import CHUNK_BYTES, Transport, claim_stdio
from calomel.suggest.runtime_file import dead_threads_logged

if TYPE_CHECKING:
    from calomel.lsp.session import CompleterFactory, Running


class Server:
    """One server for one client.

    Args:
        completer_factory: makes the model's completer from the settings; None for the shared engine server.
        clock: seconds that only grow.
        log: where the log goes; None for the user's state folder.
    """

    def __init__(
        self,
        completer_factory: CompleterFactory | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        log: Path | None = None,
    ) -> None:
        self._completer_factory = completer_factory
        self._clock = clock
        self._log = log

    def run(self, transport: Transport) -> int:
        """Serve until the client leaves; the exit status that the specification asks for."""
        door = Door(transport.write)
        while door.next() is None:
            data = b"" if door.exit_code is not None or door.gone else transport.read(CHUNK_BYTES)
            if not data:
                return door.end_code
            door.feed(data)
        import asyncio

        return asyncio.run(self._running(door).serve(transport))

    async def serve(self, transport: Transport) -> int:
        """As `run`, inside of a running event loop."""
        return await self._running(Door(transport.write)).serve(transport)

    def _running(self, door: Door) -> Running:
        from calomel.lsp.session import Running

        return Running(door, self._completer_factory, self._clock, self._log)


def create_server(
    completer_factory: CompleterFactory | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    log: Path | None = None,
) -> Server:
    """A server that is ready to serve one client."""
    return Server(completer_factory, clock=clock, log=log)


def run_stdio() -> NoReturn:
    """Be the language server of the editor at the other end of standard input and output."""
    with dead_threads_logged(logging.getLogger("calomel.lsp")):
        leave(create_server().run(claim_stdio()))


def leave(code: int) -> NoReturn:
    """End at once: threads that read, and libraries that tidy up, would hold up a usual end."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
