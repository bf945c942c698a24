"""`calomel page`: the status page of the server that editors share, which no browser reaches at its Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Any, Final

from calomel.cli.output import CommandError, say

_CHUNK: Final = 65_536


def page() -> None:
    """Show the status page of the server that your editors share, until you press Ctrl+C."""
    from calomel.infer import runtime_file
    from calomel.infer.runtime_file import RuntimeFileError, socket_in

    found: list[tuple[str, str | None, str]] = []
    for path in sorted(runtime_file.runtime_folder().glob("engine-*.json")):
        with contextlib.suppress(RuntimeFileError):
            record = runtime_file.read(path)
            if record is not None and record.alive():
                found.append((record.url, record.token, Path(record.model or "nano").name))
    if not found:
        raise CommandError("no editor has started a server", "open a file in your editor, or run `calomel serve`")
    try:
        asyncio.run(_show([(socket_in(url), url, token, model) for url, token, model in found]))
    except KeyboardInterrupt:
        return


async def _show(servers: list[tuple[str | None, str, str | None, str]]) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for path, there, token, model in servers:
            url = there
            if path is not None:
                listener = await asyncio.start_server(_Forwarder(path), "127.0.0.1", 0)
                await stack.enter_async_context(listener)
                url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
            # Other outputs than a terminal are kept in logs.
            password = f"password: {token}" if sys.stdout.isatty() else "password: in the runtime file"
            say(f"{model}: {url}/  {password}")
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
