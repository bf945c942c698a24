"""Crowds of connections: whoever has the token gets in, however many others hold theirs open."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPResponse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from tests.server.conftest import TOKEN, Serving, app_of, head, listening, received, until

from calomel.server.app import create_app
from calomel.server.settings import ServeSettings
from calomel.server.tokens import Tokens

BODY = b'{"model": "m", "prompt": "x"}'
STRANGER = b"authorization: Bearer wrong"
# What strangers send, and then no more.
SENT: dict[str, bytes] = {
    "nothing": b"",
    "half a line": b"POST /v1/fim",
    "half a head": b"POST /v1/fim/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nx-filler: " + b"x" * 4000,
    "half a body": (
        b"POST /feedback HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        b"content-length: 60000\r\n\r\n" + b"[" * 2000
    ),
    "a wrong token": head().replace(TOKEN.encode(), b"wrong"),
    "one request": b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    "a hundred requests": b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 100,
    "half a handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100,
}
CROWDS = (512, 2000)
# On two busy processors; an idle machine takes a hundredth of it.
PROMPT_SECONDS = 3.0


def whole(token: str = TOKEN, body: bytes = BODY) -> bytes:
    length = f"content-length: {len(body)}"
    asked = head("/v1/fim/completions", "POST", "content-type: application/json", length) + body
    return asked.replace(TOKEN.encode(), token.encode())


@pytest.fixture(autouse=True)
def _enough_files() -> None:
    resource = pytest.importorskip("resource")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < 8192:
        pytest.skip("this system does not allow so many open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, most))


class Crowd:
    """Strangers, who connect and send, and neither read nor close."""

    def __init__(self, place: tuple[str, int], sent: bytes) -> None:
        self.place, self.sent = place, sent
        self.sockets: list[socket.socket] = []

    def grow(self, count: int) -> None:
        while len(self.sockets) < count:
            one = socket.create_connection(self.place, timeout=10)
            self.sockets.append(one)
            one.setblocking(False)
            try:
                one.send(self.sent)
            except OSError:
                continue  # it had to leave already

    def close(self) -> None:
        for each in self.sockets:
            each.close()


@pytest.fixture
def crowd() -> Iterator[Callable[[tuple[str, int], bytes], Crowd]]:
    with ExitStack() as stack:

        def make(place: tuple[str, int], sent: bytes) -> Crowd:
            made = Crowd(place, sent)
            stack.callback(made.close)
            return made

        yield make


def status(client: socket.socket, asked: bytes) -> int:
    """Of the answer, which is read to its end."""
    client.sendall(asked)
    with HTTPResponse(client) as answer:
        answer.begin()
        answer.read()
        return answer.status


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("sent", SENT.values(), ids=list(SENT))
def test_the_owner_gets_in_whatever_a_crowd_of_strangers_holds_open(
    filler: Any, certificate: tuple[Path, Path], crowd: Any, sent: bytes, scheme: str
) -> None:
    tls = scheme == "https"
    more = {"tls_cert": certificate[0], "tls_key": certificate[1]} if tls else {}
    app = app_of(lambda: filler, shutdown_seconds=0, **more)
    context = ssl.create_default_context(cafile=certificate[0])

    def owner() -> socket.socket:
        client = socket.create_connection(place, timeout=10)
        return context.wrap_socket(client, server_hostname="127.0.0.1") if tls else client

    with listening(app) as place, owner() as old:
        assert status(old, whole()) == 200
        strangers, us = crowd(place, sent), psutil.Process()
        before = us.memory_info().rss
        for count in CROWDS:
            strangers.grow(count)
            began = time.monotonic()
            with owner() as new:
                assert status(new, whole()) == 200
            assert time.monotonic() - began < PROMPT_SECONDS
        assert status(old, whole()) == 200
        # With TLS, 256 KiB for each connection here, and the clients' side is in this process, too.
        assert us.memory_info().rss - before < (768 if tls else 96) * 1024 * 1024


def test_the_stranger_who_was_there_longest_is_told_to_come_back(serving: Serving) -> None:
    server = serving(max_connections=3)
    clients = [server.connect() for _ in range(3)]
    clients[0].sendall(b"GET /hea")
    with server.connect() as one_more:
        answer = received(clients[0])
        assert status(one_more, head("/health", "GET")) == 200
    for client in clients:
        client.close()
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"\r\nretry-after: 1\r\n" in answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "engine_overloaded"


@pytest.fixture
def team(filler: Any) -> Iterator[Callable[..., SimpleNamespace]]:
    """A server of two people."""
    with ExitStack() as stack:

        def serve(**settings: Any) -> SimpleNamespace:
            tokens = Tokens({"ann": "a-token", "bob": "b-token"})
            app = create_app(ServeSettings(shutdown_seconds=0, **settings), lambda: filler, tokens=tokens)
            place = stack.enter_context(listening(app))
            return SimpleNamespace(app=app, connect=lambda: stack.enter_context(socket.create_connection(place, 10)))

        yield serve


def test_streams_that_nobody_reads_keep_no_one_out(team: Callable[..., SimpleNamespace], filler: Any) -> None:
    filler.deltas = ["x" * 10_000] * 400
    server = team(receive_seconds=5)
    for _ in range(600):
        server.connect().sendall(whole("b-token", b'{"model": "m", "prompt": "x", "stream": true, "stop": []}'))
    filler.deltas = ["y"]
    began = time.monotonic()
    assert status(server.connect(), whole("a-token")) == 200
    assert time.monotonic() - began < PROMPT_SECONDS
    until(lambda: server.app.state.app_state.admission.taken == 0, 30)


def test_ten_thousand_answers_that_nobody_reads_are_not_kept(serving: Serving, filler: Any) -> None:
    filler.deltas = ["x" * 10_000]
    server, us = serving(receive_seconds=0.5), psutil.Process()
    before, asked = us.memory_info().rss, whole(body=b'{"model": "m", "prompt": "x", "stop": []}') * 10_000
    with server.connect() as client, contextlib.suppress(ConnectionError):
        client.sendall(asked)
        until(lambda: not server.app.state.app_state.admission.taken and len(filler.requests) > 1)
    assert len(filler.requests) < 10_000
    assert us.memory_info().rss - before < 64 * 1024 * 1024
    with server.connect() as client:
        assert status(client, whole()) == 200


def test_of_connections_with_a_token_only_an_idle_one_makes_room(
    team: Callable[..., SimpleNamespace], filler: Any
) -> None:
    server = team(max_connections=2)
    idle, other = server.connect(), server.connect()
    for each in (idle, other):
        assert status(each, whole("b-token")) == 200
    assert status(server.connect(), whole("a-token")) == 200
    assert received(idle) == b""
    assert status(other, whole("b-token")) == 200
