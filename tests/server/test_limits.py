from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from starlette.testclient import TestClient

URL = "/v1/fim/completions"
ASK = {"model": "m", "prompt": "x"}


def test_a_body_over_the_limit_is_refused_before_it_is_read(
    open_client: Callable[..., TestClient], filler: Any
) -> None:
    client = open_client(max_body_bytes=2000)
    answer = client.post(URL, json={**ASK, "prompt": "x" * 2000})

    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
    assert filler.requests == []
    assert client.post(URL, json=ASK).status_code == 200


def test_a_body_of_undeclared_length_is_refused_at_the_limit(
    open_client: Callable[..., TestClient], filler: Any
) -> None:
    def chunks() -> Iterator[bytes]:
        yield b'{"model": "m", "prompt": "'
        for _ in range(30):
            yield b"x" * 100

    answer = open_client(max_body_bytes=2000).post(URL, content=chunks(), headers={"content-type": "application/json"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
    assert filler.requests == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_beyond_the_limit_is_told_when_to_come_back(
    open_client: Callable[..., TestClient], filler: Any, *, stream: bool
) -> None:
    client = open_client(max_requests=1)
    filler.gate = Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.post, URL, json={**ASK, "stream": stream})
        assert filler.started.wait(10)
        refused = client.post(URL, json=ASK)
        filler.gate.set()
        first = running.result(10)

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json()["error"]["code"] == "engine_overloaded"
    assert first.status_code == 200
    assert client.post(URL, json=ASK).status_code == 200


@pytest.mark.parametrize("error_after", [0, 1])
@pytest.mark.parametrize("stream", [False, True])
def test_a_failed_request_gives_its_place_back(
    open_client: Callable[..., TestClient], filler: Any, *, stream: bool, error_after: int
) -> None:
    client = open_client(max_requests=1)
    filler.error, filler.error_after = ValueError(), error_after
    for _ in range(3):
        client.post(URL, json={**ASK, "stream": stream})
    filler.error = None

    assert client.post(URL, json=ASK).status_code == 200
