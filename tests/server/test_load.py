"""Slow, oversized and too many requests: slowloris, huge headers (CVE-2025-48956), crowds.

And numbers at their edges (CVE-2026-21869, CVE-2026-34756), on every route.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import httpx
import psutil
import pytest
from starlette.testclient import TestClient
from tests.server.conftest import TOKEN, Serving, head, opened, operations, received, until

from calomel.server.app import create_app
from calomel.server.settings import ServeSettings
from calomel.server.tokens import Tokens

URL = "/v1/fim/completions"


ASK = {"model": "m", "prompt": "x"}


BODY = b'{"model": "m", "prompt": "x"}'


def whole(body: bytes) -> bytes:
    return head(URL, "POST", "content-type: application/json", f"content-length: {len(body)}") + body


WHOLE = whole(BODY)


NO_HTTP = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/9.9\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"POST /v1/models HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    b"POST /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -1\r\n\r\n",
    b"POST /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx: a\x00b\r\n\r\n",
)


EDGES = {
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "deep prompt": b'{"model": "m", "prompt": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "long number": b'{"model": "m", "prompt": "x", "max_tokens": ' + b"9" * 6000 + b"}",
    "long number elsewhere": b'{"model": "m", "prompt": "x", "zzz": ' + b"9" * 10_000 + b"}",
    "no number": b'{"model": "m", "prompt": "x", "temperature": NaN}',
    "infinite": b'{"model": "m", "prompt": "x", "top_p": Infinity}',
    "utf-16": b"\xff\xfe{}",
    "lone surrogate": b'{"model": "m", "prompt": "\\ud800", "request_id": "\\ud800"}',
    "gzip": b"\x1f\x8b\x08" + b"\0" * 1000,
    "empty": b"",
    "half": b"{",
    "list": b"[]",
    "null": b"null",
    "text": b'"x"',
    "wide": b"{" + b",".join(b'"k%d": 1' % n for n in range(100_000)) + b"}",
}


# Millions of values: parsing them held up everybody for up to a second.
MANY = {
    "fields": b"{" + b",".join(b'"k%d": 1' % n for n in range(300_000)) + b"}",
    "lists": b'{"model": "m", "messages": [' + b"[]," * 1_200_000 + b"1]}",
    "numbers": b'{"model": "m", "prompt": [' + b"1," * 1_900_000 + b"1]}",
    "behind quotes": b'{"model": "\\\\\\"m\\\\", "x": [' + b"{}," * 1_200_000 + b"1]}",
    "utf-16": ('{"model": "m", "x": ["\\"", ' + "[]," * 600_000 + "1]}").encode("utf-16"),
}


# What a client may be told. 404: a model of this kind is not loaded.
FINE = {200, 400, 404, 413, 415, 429, 503}


@pytest.mark.parametrize("part", [b"", WHOLE[:12], WHOLE[:60], WHOLE[:-5]], ids=["nothing", "line", "head", "body"])
def test_a_request_that_comes_in_part_or_in_drips_is_cut(serving: Serving, part: bytes) -> None:
    server = serving(receive_seconds=0.3)
    with server.connect() as client:
        client.sendall(part)
        time.sleep(0.1)
        client.sendall(WHOLE[len(part) : len(part) + 1])
        answer = received(client)

    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "request_timeout"
    assert server.app.state.app_state.admission.taken == 0


def test_a_second_request_of_a_connection_is_timed_too(serving: Serving) -> None:
    with serving(receive_seconds=0.3).connect() as client:
        client.sendall(WHOLE)
        first = client.recv(65536)
        time.sleep(0.4)  # idle connections may stay
        client.sendall(WHOLE[:40])
        rest = received(client)

    assert first.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 408" in rest


def test_a_long_answer_is_not_cut_by_the_time_for_the_request(serving: Serving, filler: Any) -> None:
    filler.gate = Event()
    with serving(receive_seconds=0.3).connect() as client:
        client.sendall(WHOLE)
        assert filler.started.wait(10)
        time.sleep(0.4)
        filler.gate.set()
        assert client.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_client_that_does_not_read_its_answer_is_let_go(serving: Serving, filler: Any) -> None:
    filler.deltas = ["x" * 100_000] * 400
    server = serving(receive_seconds=0.5)
    body = b'{"model": "m", "prompt": "x", "stream": true, "stop": []}'
    with server.connect() as client:
        client.sendall(whole(body))
        assert filler.started.wait(10)
        until(lambda: server.app.state.app_state.admission.taken == 0, 20)


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


def test_what_is_no_http_is_refused(serving: Serving) -> None:
    server = serving(receive_seconds=0.5)
    for data in NO_HTTP:
        with server.connect() as client:
            client.sendall(data)
            assert client.recv(4096).split()[1] in {b"400", b"408"}, data


def test_length_and_chunks_together_are_refused_and_what_follows_is_not_read(serving: Serving) -> None:
    with serving(receive_seconds=0.5).connect() as client:
        client.sendall(
            head("/health", "GET", "content-length: 4", "transfer-encoding: chunked")
            + b"0\r\n\r\n"
            + head("/v1/models", "GET", "connection: close").replace(TOKEN.encode(), b"wrong")
        )
        answer = received(client)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "invalid_request_error"


def test_a_packed_body_is_not_unpacked(client: TestClient, filler: Any) -> None:
    """GO-2025-3548: a few kilobytes may become gigabytes."""
    import gzip

    packed = gzip.compress(json.dumps({"model": "m", "prompt": "x" * 3_000_000}).encode())
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    assert client.post("/v1/fim/completions", content=packed, headers=headers).status_code in {400, 415}
    assert filler.requests == []


@pytest.mark.parametrize("body", MANY.values(), ids=list(MANY))
def test_a_body_of_too_many_values_is_refused_before_it_is_read(client: TestClient, body: bytes) -> None:
    expected = dict.fromkeys(
        ("/v1/fim/completions", "/v1/apply/completions", "/calomel/v1/complete", "/api/generate"), "too_many_values"
    )
    # Of what comes without a token, much less is read.
    for path, code in {**expected, "/feedback": "request_too_large"}.items():
        answer = client.post(path, content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, code), path


def test_a_text_of_megabytes_is_one_value(client: TestClient) -> None:
    text = "call(\"a\", [1, 2], {'b': '\\\\'})\n" * 80_000
    answer = client.post("/v1/fim/completions", json={"model": "m", "prompt": text, "max_tokens": 4})
    assert answer.status_code == 200


def test_a_body_at_the_edge_of_json_is_answered_and_the_server_goes_on(client: TestClient) -> None:
    for name, text in EDGES.items():
        for method, path, _ in operations(client):
            if method == "POST":
                answer = client.post(path, content=text, headers={"content-type": "application/json"})
                assert answer.status_code in FINE, (path, answer.text[:300])
                if path in {"/v1/fim/completions", "/feedback"} and name != "long number elsewhere":
                    assert answer.status_code in {400, 413}, (path, name)
                if answer.status_code in {400, 413}:
                    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert client.post("/v1/fim/completions", json={"model": "m", "prompt": ""}).status_code == 200


def test_a_client_that_holds_its_share_leaves_room_for_the_others(filler: Any) -> None:
    filler.gate = Event()
    app = create_app(
        ServeSettings(max_requests=4, client_share=0.5),
        lambda: filler,
        tokens=Tokens({"ann": "a-token", "bob": "b-token"}),
    )
    with opened(app, token=None) as client, ThreadPoolExecutor(4) as pool:

        def ask(token: str) -> httpx.Response:
            return client.post(URL, json=ASK, headers={"x-api-key": token})  # type: ignore[return-value]

        greedy = [pool.submit(ask, "a-token") for _ in range(2)]
        until(lambda: app.state.app_state.admission.taken == 2)
        third = ask("a-token")
        other = pool.submit(ask, "b-token")
        until(lambda: app.state.app_state.admission.taken == 3)
        filler.gate.set()

        assert (third.status_code, third.json()["error"]["code"]) == (429, "rate_limit_reached")
        assert third.headers["retry-after"] == "1"
        assert {request.result(10).status_code for request in [*greedy, other]} == {200}


@pytest.mark.slow
def test_after_a_thousand_that_hung_up_places_and_memory_are_as_before(serving: Serving, filler: Any) -> None:
    server = serving()
    body = b'{"model": "m", "prompt": "x", "stream": %s}'

    def hang_up(count: int) -> None:
        for number in range(count):
            filler.gate = Event()
            filler.started.clear()
            sent = body % (b"true" if number % 2 else b"false")
            with server.connect() as client:
                asked = whole(sent)
                client.sendall(asked if number % 5 else asked[: -1 - number % len(sent)])
                if number % 5:
                    assert filler.started.wait(10)
            filler.requests.clear()
        until(lambda: server.app.state.app_state.admission.taken == 0)

    hang_up(100)
    us = psutil.Process()
    files, memory = us.num_fds(), us.memory_info().rss
    hang_up(1000)

    until(lambda: us.num_fds() <= files + 2)
    assert us.memory_info().rss - memory < 16 * 1024 * 1024
    filler.gate = None
    assert httpx.post(server.url + URL, json=ASK, headers=server.headers).status_code == 200
