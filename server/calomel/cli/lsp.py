"""`calomel lsp`: the language server, as an editor starts it."""

from __future__ import annotations

from typing import Annotated

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
    from calomel.lsp.server import create_server, leave, run_stdio
    from calomel.lsp.transport import accept_one

    if tcp is None:
        run_stdio()
    try:
        transport = accept_one(tcp, lambda port: print(f"listening on 127.0.0.1:{port}", flush=True))
    except OSError as error:
        raise CommandError(f"cannot listen on port {tcp}: {error.strerror}") from error
    leave(create_server().run(transport))
