"""Slow and oversized requests: slowloris, huge headers (CVE-2025-48956), clients that do not read, too many of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from threading import Event
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from tests.server.conftest import TOKEN, head, received, until

Serving = Callable[..., SimpleNamespace]
BODY = b'{"model": "m", "prompt": "x"}'
WHOLE = head("/v1/fim/completions", "POST", "content-type: application/json", f"content-length: {len(BODY)}") + BODY


@pytest.mark.parametrize(
    "part",
    [b"", b"POST /v1/fim", b"POST /v1/fim/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nx-a: ", WHOLE[:-5]],
    ids=["nothing", "half a line", "half a head", "half a body"],
)
def test_a_half_sent_request_is_cut(serving: Serving, part: bytes) -> None:
    server = serving(receive_seconds=0.3)
    with server.connect() as client:
        client.sendall(part)
        began = time.monotonic()
        answer = received(client)
        took = time.monotonic() - began

    assert 0.2 < took < 5
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "request_timeout"
    assert server.app.state.door.admission.taken == 0


def test_a_request_that_drips_is_cut_although_something_always_comes(serving: Serving) -> None:
    with serving(receive_seconds=0.5).connect() as client:
        client.settimeout(0.05)
        began = time.monotonic()
        answer = b""
        for byte in WHOLE:
            try:
                client.sendall(bytes([byte]))
                answer += client.recv(4096)
                break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        assert time.monotonic() - began < 5
        assert answer.startswith(b"HTTP/1.1 408")


def test_a_second_request_of_a_connection_is_timed_too(serving: Serving) -> None:
    with serving(receive_seconds=0.5).connect() as client:
        client.sendall(WHOLE)
        first = client.recv(65536)
        time.sleep(0.7)  # idle connections may stay
        client.sendall(WHOLE[:40])
        rest = received(client)

    assert first.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 408" in rest


def test_a_long_answer_is_not_cut_by_the_time_for_the_request(serving: Serving, filler: Any) -> None:
    filler.gate = Event()
    with serving(receive_seconds=0.3).connect() as client:
        client.sendall(WHOLE)
        assert filler.started.wait(10)
        time.sleep(0.6)
        filler.gate.set()
        assert client.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_client_that_does_not_read_its_answer_is_let_go(serving: Serving, filler: Any) -> None:
    filler.deltas = ["x" * 100_000] * 400
    server = serving(receive_seconds=0.5)
    body = b'{"model": "m", "prompt": "x", "stream": true, "stop": []}'
    with server.connect() as client:
        client.sendall(
            head("/v1/fim/completions", "POST", "content-type: application/json", f"content-length: {len(body)}") + body
        )
        assert filler.started.wait(10)
        until(lambda: server.app.state.door.admission.taken == 0, 20)


def test_a_header_of_200_kilobytes_is_refused_in_the_published_shape(serving: Serving) -> None:
    with serving().connect() as client:
        try:
            client.sendall(head("/health", "GET", "x-filler: " + "x" * 200_000))
        except ConnectionError:
            return
        answer = received(client)
    if answer:
        assert answer.startswith(b"HTTP/1.1 400")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /v1/models HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        b"POST /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx: a\x00b\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(serving: Serving, data: bytes) -> None:
    with serving(receive_seconds=1).connect() as client:
        client.sendall(data)
        assert client.recv(4096).split()[1] in {b"400", b"408"}


def test_length_and_chunks_together_are_refused_and_what_follows_is_not_read(serving: Serving) -> None:
    with serving(receive_seconds=1).connect() as client:
        client.sendall(
            head("/health", "GET", "content-length: 4", "transfer-encoding: chunked")
            + b"0\r\n\r\n"
            + head("/v1/models", "GET", "connection: close").replace(TOKEN.encode(), b"wrong")
        )
        answer = received(client)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "invalid_request_error"


def test_one_connection_too_many_is_told_to_come_back(serving: Serving) -> None:
    server = serving(max_connections=3)
    clients = [server.connect() for _ in range(3)]
    try:
        for client in clients:
            client.sendall(head("/health", "GET"))
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
        with server.connect() as one_more:
            answer = received(one_more)
    finally:
        for client in clients:
            client.close()

    assert answer.startswith(b"HTTP/1.1 503")
    assert b"\r\nretry-after: 1\r\n" in answer

    def again() -> bool:
        try:
            return httpx.get(f"{server.url}/health").status_code == 200
        except httpx.HTTPError:
            return False

    until(again)
