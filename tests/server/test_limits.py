from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from calomel.server.door import Door

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


async def test_who_sends_many_long_texts_keeps_nobody_else_waiting(
    open_client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each client one text at a time is looked at for secrets: sixty of one are not before another's."""
    app: Any = open_client(no_auth=True, max_requests=64, client_share=1.0).app

    def slow(_: object, text: str) -> str:
        time.sleep(0.02 if len(text) > 100 else 0)
        return text

    monkeypatch.setattr(Door, "mask", slow)
    done: list[str] = []

    async def ask(address: str, prompt: str) -> None:
        transport = httpx.ASGITransport(app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answer = await client.post("/v1/fim/completions", json={"model": "m", "prompt": prompt})
        assert answer.status_code == 200
        done.append(address)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(60):
            tasks.create_task(ask("10.0.0.1", "x = 1\n" * 100))
        await asyncio.sleep(0.1)
        await ask("10.0.0.2", "x = ")
        before = len(done) - 1
    assert before < 30
