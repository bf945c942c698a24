"""`calomel lsp`: the language server, as an editor starts it."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from calomel.cli.errors import CommandError


def lsp(
    tcp: Annotated[
        int | None, typer.Option(help="Wait on 127.0.0.1 for one client at this port; 0 takes a free one.")
    ] = None,
    stdio: Annotated[bool, typer.Option("--stdio", help="Speak over standard input and output: the default.")] = False,
) -> None:
    """Serve suggestions to an editor that speaks the language server protocol."""
    if stdio and tcp is not None:
        raise CommandError("--stdio and --tcp exclude each other")
    # Imported here: an editor waits for the answer to its first message.
    from calomel.lsp.server import create_server
    from calomel.lsp.transport import accept_one, claim_stdio

    if tcp is None:
        transport = claim_stdio()
    else:
        try:
            transport = accept_one(tcp, lambda port: print(f"listening on 127.0.0.1:{port}", flush=True))
        except OSError as error:
            raise CommandError(f"cannot listen on port {tcp}: {error.strerror}") from error
    _leave(create_server().run(transport))


def _leave(code: int) -> NoReturn:
    """End at once: the thread that reads standard input, and imports that still run, would hold up a usual end."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
