from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from calomel.bench.wire_client import WireClient, WireError

Script = Callable[[bytes, int], bytes | None]


@asynccontextmanager
async def serving(script: Script) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that answers each request by `script(request, number of the connection)`; None hangs up."""
    requests: list[bytes] = []
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        mine = connections
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    (int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0
                )
                requests.append(head + await reader.readexactly(length))
                answer = script(requests[-1], mine)
                if answer is None:
                    break
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], requests
        # The handlers see that their clients have gone.
        await asyncio.sleep(0.02)


def run(script: Script, ask: Callable[[WireClient], Awaitable[None]]) -> Sequence[bytes]:
    """Let a client ask a server; what the server was sent."""

    async def both() -> list[bytes]:
        async with serving(script) as (port, requests), WireClient("127.0.0.1", port, "secret") as wire:
            await ask(wire)
            return requests

    return asyncio.run(both())


def test_requests_share_a_connection_and_carry_the_token() -> None:
    connections = []

    def script(_: bytes, connection: int) -> bytes:
        connections.append(connection)
        return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Name: Value\r\n\r\n{}"

    async def ask(wire: WireClient) -> None:
        for _ in range(2):
            reply = await wire.post("/path", b'{"a": 1}')
            assert (reply.status, reply.headers["x-name"], reply.json()) == (200, "Value", {})

    requests = run(script, ask)
    assert connections == [1, 1]
    assert requests[0].startswith(b"POST /path HTTP/1.1\r\n")
    assert b"authorization: Bearer secret\r\n" in requests[0]
    assert requests[0].endswith(b'\r\n\r\n{"a": 1}')


def test_a_chunked_answer_is_put_together() -> None:
    body = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"

    async def ask(wire: WireClient) -> None:
        assert (await wire.get("/")).body == b"abcde"
        assert (await wire.get("/")).body == b"abcde"

    run(lambda _, __: body, ask)


def test_a_connection_that_the_server_closed_meanwhile_is_opened_again() -> None:
    async def ask(wire: WireClient) -> None:
        await wire.get("/")
        await asyncio.sleep(0.05)
        assert (await wire.get("/")).status == 204

    def script(_: bytes, connection: int) -> bytes:
        return b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"

    assert len(run(script, ask)) == 2


@pytest.mark.parametrize("answer", [None, b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"])
def test_what_is_no_answer_is_an_error(answer: bytes | None) -> None:
    async def ask(wire: WireClient) -> None:
        with pytest.raises(WireError):
            await wire.get("/")

    run(lambda _, __: answer, ask)


def test_a_client_can_leave_without_its_answer() -> None:
    arrived = []

    async def ask(wire: WireClient) -> None:
        await wire.send("/", b"{}")
        await asyncio.sleep(0.05)
        wire.drop()

    requests = run(lambda request, _: arrived.append(request), ask)
    assert len(requests) == 1
