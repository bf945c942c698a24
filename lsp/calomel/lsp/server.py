"""The language server as a program: greet the client at once, then import everything else."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from calomel.lsp.connection import CHUNK_BYTES, Connection, Transport, claim_stdio

if TYPE_CHECKING:
    from calomel.infer.client import Connect


@dataclass(frozen=True, slots=True)
class Server:
    """One server for one client.

    Attributes:
        completer_factory: makes the model's completer from the settings; None for the shared engine server.
        clock: monotonic seconds.
        log: the path of the log; None for the user's state folder.
    """

    completer_factory: Connect | None = None
    clock: Callable[[], float] = time.monotonic
    log: Path | None = None

    def run(self, transport: Transport) -> int:
        """Serve until the client leaves; returns the exit status that the specification asks for."""
        connection = Connection(transport.write)
        while connection.next() is None:
            data = b"" if connection.ended else transport.read(CHUNK_BYTES)
            if not data:
                return connection.end_code
            connection.feed(data)
        import asyncio
        import logging

        from calomel.storage.failures import dead_threads_logged

        with dead_threads_logged(logging.getLogger("calomel.lsp")):
            return asyncio.run(self.serve(transport, connection))

    def serve(self, transport: Transport, connection: Connection | None = None) -> Coroutine[Any, Any, int]:
        """Like `run`, for an event loop; `connection` has greeted the client already."""
        # Imported objects stay. Full garbage collections over them delayed the start, and keystrokes by 20 to 40 ms;
        # the garbage that imports leave behind is young.
        usual = gc.get_threshold()
        gc.set_threshold(2_000, 20, 1_000_000)
        from calomel.lsp import session

        gc.freeze()
        gc.set_threshold(*usual)
        return session.serve(
            connection or Connection(transport.write), transport, self.completer_factory, self.clock, self.log
        )


def run_stdio() -> NoReturn:
    """Run the language server for the editor on standard input and output."""
    leave(Server().run(claim_stdio()))


def leave(code: int) -> NoReturn:
    """Exit at once: reading threads, and libraries that clean up, would delay a normal exit."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
