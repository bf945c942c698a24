"""`calomel page`: the status page of the server that editors share, which no browser reaches at its Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from calomel.cli.output import CommandError, say

if TYPE_CHECKING:
    from calomel.infer.runtime_file import ServerRecord

_CHUNK: Final = 65_536


def page() -> None:
    """Show the status page of the server that your editors share, until you press Ctrl+C."""
    from calomel.infer.runtime_file import live, runtime_folder

    servers = [(record, path) for path in sorted(runtime_folder().glob("engine-*.json")) if (record := live(path))]
    if not servers:
        raise CommandError("no editor has started a server", "open a file in your editor, or run `calomel serve`")
    try:
        asyncio.run(_show(servers))
    except KeyboardInterrupt:
        return


async def _show(servers: list[tuple[ServerRecord, Path]]) -> None:
    from calomel.infer.runtime_file import socket_in

    async with contextlib.AsyncExitStack() as stack:
        for server, file in servers:
            url, path = server.url, socket_in(server.url)
            if path is not None:
                listener = await asyncio.start_server(_Forwarder(path), "127.0.0.1", 0)
                await stack.enter_async_context(listener)
                url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
            # Other outputs than a terminal are kept in logs.
            password = f"password: {server.token}" if sys.stdout.isatty() else f"password: the token in {file}"
            say(f"{Path(server.model or 'nano').name}: {url}/  {password}")
        say("Open an address in your browser. Ctrl+C ends this.")
        sys.stdout.flush()
        await asyncio.Event().wait()


class _Forwarder:
    """Passes the bytes of each connection on to a Unix socket, and back."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Not on Windows, where no address is a path.
        connect: Any = getattr(asyncio, "open_unix_connection", None)
        try:
            far_reader, far_writer = await connect(self._path)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copied(reader, far_writer), _copied(far_reader, writer))


async def _copied(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()
    except ConnectionError:
        pass
    finally:
        target.close()
