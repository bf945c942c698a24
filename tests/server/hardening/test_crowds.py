"""Many requests, many wrong tokens, many that hang up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from tests.server.conftest import TOKEN, until

from calomel.server.app import create_app
from calomel.server.settings import ServerSettings
from calomel.server.tokens import Tokens

URL = "/v1/fim/completions"
ASK = {"model": "m", "prompt": "x"}


def test_wrong_tokens_of_one_address_are_bounded_and_the_right_one_still_works(client: TestClient) -> None:
    assert client.get("/v1/models").status_code == 200
    wrong = [client.get("/v1/models", headers={"authorization": f"Bearer guess-{n}"}) for n in range(60)]

    assert wrong[0].status_code == 401
    assert (wrong[-1].status_code, wrong[-1].json()["error"]["code"]) == (429, "rate_limit_reached")
    assert int(wrong[-1].headers["retry-after"]) >= 1
    assert client.get("/v1/models").status_code == 200
    assert client.get("/health", headers={"authorization": ""}).status_code == 200


def test_wrong_tokens_of_others_at_the_same_address_keep_no_owner_out(open_client: Callable[..., TestClient]) -> None:
    client = open_client(token=None)
    for n in range(60):
        client.get("/v1/models", headers={"authorization": f"Bearer guess-{n}"})
    assert client.get("/v1/models", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client.get("/v1/models", headers={"authorization": "Bearer guess"}).status_code == 429


def test_no_token_at_all_is_no_guess(open_client: Callable[..., TestClient]) -> None:
    client = open_client(token=None)
    assert {client.get("/v1/models").status_code for _ in range(100)} == {401}


def test_a_client_that_holds_its_share_leaves_room_for_the_others(filler: Any) -> None:
    filler.gate = Event()
    app = create_app(
        ServerSettings(max_requests=4, client_share=0.5),
        lambda: filler,
        tokens=Tokens({"ann": "a-token", "bob": "b-token"}),
    )
    with TestClient(app, base_url="http://127.0.0.1") as client, ThreadPoolExecutor(4) as pool:
        until(lambda: app.state.door.loader.state == "ready")

        def ask(token: str) -> httpx.Response:
            return client.post(URL, json=ASK, headers={"x-api-key": token})  # type: ignore[return-value]

        greedy = [pool.submit(ask, "a-token") for _ in range(2)]
        until(lambda: app.state.door.admission.taken == 2)
        third = ask("a-token")
        other = pool.submit(ask, "b-token")
        until(lambda: app.state.door.admission.taken == 3)
        filler.gate.set()

        assert (third.status_code, third.json()["error"]["code"]) == (429, "rate_limit_reached")
        assert third.headers["retry-after"] == "1"
        assert {request.result(10).status_code for request in [*greedy, other]} == {200}


def test_a_client_that_asks_too_often_is_told_when_to_come_back(open_client: Callable[..., TestClient]) -> None:
    client = open_client(requests_per_minute=3)
    answers = [client.post(URL, json=ASK) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 20
    assert client.get("/v1/models").status_code == 200


def test_every_refusal_of_a_full_server_says_when_to_come_back(
    serving: Callable[..., SimpleNamespace], filler: Any
) -> None:
    filler.gate = Event()
    server = serving(max_requests=4)

    async def crowd() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=64)
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=server.url, headers=headers, limits=limits, timeout=20) as client:
            asked = [asyncio.create_task(client.post(URL, json=ASK)) for _ in range(32)]
            while sum(task.done() for task in asked) < 28:  # noqa: ASYNC110 (whichever they are)
                await asyncio.sleep(0.01)
            filler.gate.set()
            return [await task for task in asked]

    answers = asyncio.run(crowd())
    assert sorted({answer.status_code for answer in answers}) in ([200, 429], [200, 429, 503], [200, 503])
    assert all("retry-after" in answer.headers for answer in answers if answer.status_code != 200)


@pytest.mark.slow
def test_after_a_thousand_that_hung_up_places_and_memory_are_as_before(
    serving: Callable[..., SimpleNamespace], filler: Any
) -> None:
    server = serving()
    body = b'{"model": "m", "prompt": "x", "stream": %s}'

    def hang_up(count: int) -> None:
        for number in range(count):
            filler.gate = Event()
            filler.started.clear()
            sent = body % (b"true" if number % 2 else b"false")
            with server.connect() as client:
                client.sendall(
                    f"POST {URL} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: "
                    f"application/json\r\ncontent-length: {len(sent)}\r\n\r\n".encode()
                    + (sent[: number % len(sent)] if number % 5 == 0 else sent)
                )
                if number % 5:
                    assert filler.started.wait(10)
            filler.requests.clear()
        until(lambda: server.app.state.door.admission.taken == 0)

    hang_up(100)
    files, memory = _open_files(), _memory()
    hang_up(1000)

    until(lambda: _open_files() <= files + 2)
    assert _memory() - memory < 16 * 1024 * 1024
    filler.gate = None
    assert httpx.post(server.url + URL, json=ASK, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
