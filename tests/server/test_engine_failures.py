"""An engine that dies, again and again; a model that sleeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import FakeFiller, until

from calomel.server.errors import ModelFailedError, ModelLoadingError
from calomel.server.loading import MAX_RESTARTS, ModelLoader

URL = "/v1/fim/completions"
ASK = {"model": "m", "prompt": "x"}


class EngineDiedError(Exception):
    code = "engine_stopped"


async def opened(loader: ModelLoader) -> None:
    while loader.state == "loading":  # noqa: ASYNC110 (a thread opens it)
        await asyncio.sleep(0.001)


def failing() -> FakeFiller:
    filler = FakeFiller()
    filler.error = EngineDiedError("the user's text")
    return filler


@pytest.mark.parametrize("stream", [False, True])
def test_after_the_engine_died_the_next_request_is_answered(
    open_client: Callable[..., TestClient], *, stream: bool
) -> None:
    opened = [failing(), FakeFiller()]
    made = iter(opened)
    client = open_client(factory=lambda: next(made))
    failed = client.post(URL, json={**ASK, "stream": stream})
    answered = client.post(URL, json={**ASK, "stream": stream})

    assert (failed.status_code, failed.json()["error"]["code"]) == (503, "engine_stopped")
    assert failed.headers["retry-after"] == "2"
    assert "text" not in failed.text
    assert answered.status_code == 200
    assert opened[0].closed
    assert client.get("/health").status_code == 200


def test_a_stream_that_the_engine_leaves_is_ended_with_the_error(open_client: Callable[..., TestClient]) -> None:
    first = failing()
    first.error_after = 1
    made = iter([first, FakeFiller()])
    client = open_client(factory=lambda: next(made))
    broken = client.post(URL, json={**ASK, "stream": True})

    assert '"code":"engine_stopped"' in broken.text
    assert "[DONE]" not in broken.text
    assert client.post(URL, json=ASK).status_code == 200


def test_an_engine_that_dies_again_and_again_stays_off(
    open_client: Callable[..., TestClient], caplog: pytest.LogCaptureFixture
) -> None:
    made: list[FakeFiller] = []

    def factory() -> FakeFiller:
        made.append(failing())
        return made[-1]

    client = open_client(factory=factory)
    codes = [client.post(URL, json=ASK).json()["error"]["code"] for _ in range(MAX_RESTARTS + 3)]

    assert codes == ["engine_stopped"] * (MAX_RESTARTS + 1) + ["model_failed"] * 2
    assert len(made) == MAX_RESTARTS + 1
    assert client.get("/health").json()["status"] == "failed"
    assert "stays off" in caplog.text


def test_failures_long_ago_do_not_count() -> None:
    now = [0.0]
    made: list[FakeFiller] = []

    def factory() -> FakeFiller:
        made.append(FakeFiller())
        return made[-1]

    async def scenario() -> None:
        loader = ModelLoader(factory, lambda: None, clock=lambda: now[0])  # type: ignore[arg-type, return-value]
        loader.start()
        await opened(loader)
        for _ in range(5):
            loader.stopped(await loader.acquire())
            await loader.acquire()
            now[0] += 300.0
        assert (loader.state, loader.restarts) == ("ready", 5)
        # Somebody who noticed late speaks of an engine that is gone.
        loader.stopped(made[0])  # type: ignore[arg-type]
        assert loader.state == "ready"
        loader.close()

    asyncio.run(scenario())


def test_requests_that_fail_together_open_the_model_once(open_client: Callable[..., TestClient]) -> None:
    first = failing()
    first.gate = Event()
    made: list[FakeFiller] = []

    def factory() -> FakeFiller:
        made.append(FakeFiller() if made else first)
        return made[-1]

    client = open_client(factory=factory)
    app: Any = client.app
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(client.post, URL, json=ASK) for _ in range(8)]
        until(lambda: app.state.door.admission.taken == 8)
        first.gate.set()
        assert {each.result(10).status_code for each in asked} == {503}

    assert client.post(URL, json=ASK).status_code == 200
    assert len(made) == 2


def test_a_model_that_nobody_uses_is_closed_and_opened_for_the_next_request(
    open_client: Callable[..., TestClient],
) -> None:
    made: list[FakeFiller] = []

    def factory() -> FakeFiller:
        made.append(FakeFiller())
        return made[-1]

    client = open_client(factory=factory, idle_unload=0.1 / 60)
    app: Any = client.app
    until(lambda: app.state.door.loader.state == "unloaded")
    until(lambda: made[0].closed)

    assert client.get("/health").json() == {"status": "ok"}
    assert client.post(URL, json=ASK).status_code == 200
    assert len(made) == 2


def test_a_request_that_runs_keeps_the_model(open_client: Callable[..., TestClient], filler: FakeFiller) -> None:
    client = open_client(idle_unload=0.05 / 60)
    filler.gate = Event()
    with ThreadPoolExecutor(1) as pool:
        app: Any = client.app
        asked = pool.submit(client.post, URL, json=ASK)
        until(lambda: app.state.door.admission.taken == 1)
        time.sleep(0.3)
        assert app.state.door.loader.state == "ready"
        filler.gate.set()
        assert asked.result(10).status_code == 200


def test_whoever_waits_for_a_model_to_wake_waits_no_longer_than_said() -> None:
    gate = Event()
    made: list[FakeFiller] = []

    def factory() -> FakeFiller:
        if made:
            gate.wait(10)
        made.append(FakeFiller())
        return made[-1]

    async def scenario() -> None:
        loader = ModelLoader(factory, lambda: None, wake_seconds=0.05)  # type: ignore[arg-type, return-value]
        loader.start()
        await opened(loader)
        await loader.unload()
        with pytest.raises(ModelLoadingError):
            await loader.acquire()
        gate.set()
        await opened(loader)
        assert loader.state == "ready"
        assert len(made) == 2
        loader.close()

    asyncio.run(scenario())


def test_a_model_that_does_not_open_again_says_so() -> None:
    made: list[FakeFiller] = []

    def factory() -> FakeFiller:
        if made:
            raise MemoryError
        made.append(FakeFiller())
        return made[-1]

    async def scenario() -> None:
        loader = ModelLoader(factory, lambda: None)  # type: ignore[arg-type, return-value]
        loader.start()
        await opened(loader)
        await loader.unload()
        with pytest.raises(ModelFailedError):
            await loader.acquire()
        loader.close()

    asyncio.run(scenario())
