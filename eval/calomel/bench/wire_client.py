"""HTTP/1.1 on one kept connection, with as little work as a request takes: the clients share the server's processor."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

_LINE_END: Final = b"\r\n"
_LONGEST_HEAD: Final = 64 * 1024


class WireError(Exception):
    """The server closed the connection, or said what HTTP does not know."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; names of headers in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


class WireClient:
    """One client with one connection.

    Args:
        host: of the server.
        port: of the server.
        token: sent with every request; None for none.
        source: address of this machine to come from; None for the system's choice.
    """

    def __init__(self, host: str, port: int, token: str | None, source: str | None = None) -> None:
        self._host, self._port, self._source = host, port, source
        self._common = f"host: {host}:{port}\r\n" + (f"authorization: Bearer {token}\r\n" if token else "")
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()

    def drop(self) -> None:
        """Close the connection at once, whatever is under way."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None

    async def get(self, path: str) -> Reply:
        """GET `path`. Raises WireError and OSError."""
        return await self._ask(f"GET {path} HTTP/1.1\r\n{self._common}\r\n".encode())

    async def post(self, path: str, body: bytes, media_type: str = "application/json") -> Reply:
        """POST `body` to `path` and read the whole answer. Raises WireError and OSError."""
        return await self._ask(self._head(path, body, media_type) + body)

    async def send(self, path: str, body: bytes) -> None:
        """POST without reading the answer, for a client that is going to leave."""
        await self._write(self._head(path, body, "application/json") + body)

    def _head(self, path: str, body: bytes, media_type: str) -> bytes:
        lines = f"POST {path} HTTP/1.1\r\n{self._common}content-type: {media_type}\r\ncontent-length: {len(body)}\r\n"
        return lines.encode() + _LINE_END

    async def _ask(self, request: bytes) -> Reply:
        reader = await self._write(request)
        status, headers = await self._read_head(reader)
        try:
            if headers.get("transfer-encoding") == "chunked":
                body = b"".join([chunk async for chunk in _chunks(reader)])
            else:
                body = await reader.readexactly(int(headers.get("content-length", 0)))
        except (asyncio.IncompleteReadError, ValueError) as error:
            self.drop()
            raise WireError("the answer ended too early") from error
        if headers.get("connection", "").lower() == "close":
            self.drop()
        return Reply(status, headers, body)

    async def _write(self, request: bytes) -> asyncio.StreamReader:
        if self._reader is not None and self._reader.at_eof():
            # The server hangs up on a connection that nobody has used for a while.
            self.drop()
        if self._reader is None or self._writer is None:
            source = (self._source, 0) if self._source else None
            self._reader, self._writer = await asyncio.open_connection(
                self._host, self._port, local_addr=source, limit=_LONGEST_HEAD
            )
        self._writer.write(request)
        await self._writer.drain()
        return self._reader

    async def _read_head(self, reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
        try:
            head = await reader.readuntil(_LINE_END * 2)
            first, *lines = head.decode("latin-1").split("\r\n")[:-2]
            pairs = (line.partition(":") for line in lines)
            return int(first.split(" ", 2)[1]), {name.lower(): value.strip() for name, _, value in pairs}
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
            self.drop()
            raise WireError("the server closed the connection, or its answer is no HTTP") from error


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The chunks of a chunked body (RFC 9112, section 7.1), without trailers."""
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
