"""An engine that dies, again and again."""

from __future__ import annotations

import asyncio
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


def failing() -> FakeFiller:
    filler = FakeFiller()
    filler.error = EngineDiedError("the user's text")
    return filler


class Factory:
    """Opens the models that it is given, and then sound ones."""

    def __init__(self, *first: FakeFiller) -> None:
        self.made: list[FakeFiller] = []
        self._first = iter(first)
        self.before_next: Callable[[], object] = lambda: None

    def __call__(self) -> Any:
        if self.made:
            self.before_next()
        self.made.append(next(self._first, None) or FakeFiller())
        return self.made[-1]


async def opened(loader: ModelLoader) -> None:
    while loader.state == "loading":  # noqa: ASYNC110 (a thread opens it)
        await asyncio.sleep(0.001)


async def started(factory: Factory, **options: Any) -> ModelLoader:
    loader = ModelLoader(factory, lambda: None, **options)  # type: ignore[arg-type, return-value]
    loader.start()
    await opened(loader)
    return loader


@pytest.mark.parametrize("stream", [False, True])
def test_after_the_engine_died_the_next_request_is_answered(
    open_client: Callable[..., TestClient], *, stream: bool
) -> None:
    factory = Factory(failing())
    client = open_client(factory=factory)
    failed = client.post(URL, json={**ASK, "stream": stream})
    answered = client.post(URL, json={**ASK, "stream": stream})

    assert (failed.status_code, failed.json()["error"]["code"]) == (503, "engine_stopped")
    assert failed.headers["retry-after"] == "2"
    assert "text" not in failed.text
    assert answered.status_code == 200
    assert factory.made[0].closed
    assert client.get("/health").status_code == 200


def test_a_stream_that_the_engine_leaves_is_ended_with_the_error(open_client: Callable[..., TestClient]) -> None:
    first = failing()
    first.error_after = 1
    client = open_client(factory=Factory(first))
    broken = client.post(URL, json={**ASK, "stream": True})

    assert '"code":"engine_stopped"' in broken.text
    assert "[DONE]" not in broken.text
    assert client.post(URL, json=ASK).status_code == 200


def test_an_engine_that_dies_again_and_again_stays_off(
    open_client: Callable[..., TestClient], caplog: pytest.LogCaptureFixture
) -> None:
    factory = Factory(*(failing() for _ in range(9)))
    client = open_client(factory=factory)
    codes = [client.post(URL, json=ASK).json()["error"]["code"] for _ in range(MAX_RESTARTS + 3)]

    assert codes == ["engine_stopped"] * (MAX_RESTARTS + 1) + ["model_failed"] * 2
    assert len(factory.made) == MAX_RESTARTS + 1
    assert client.get("/health").json()["status"] == "failed"
    assert "stays off" in caplog.text


async def test_failures_long_ago_do_not_count() -> None:
    now, factory = [0.0], Factory()
    loader = await started(factory, clock=lambda: now[0])
    for _ in range(5):
        loader.stopped(await loader.acquire())
        await loader.acquire()
        now[0] += 300.0
    assert (loader.state, loader.restarts) == ("ready", 5)
    # Somebody who noticed late speaks of an engine that is gone.
    loader.stopped(factory.made[0])  # type: ignore[arg-type]
    assert loader.state == "ready"
    loader.close()


def test_requests_that_fail_together_open_the_model_once(open_client: Callable[..., TestClient]) -> None:
    first = failing()
    first.gate = Event()
    factory = Factory(first)
    client = open_client(factory=factory)
    app: Any = client.app
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(client.post, URL, json=ASK) for _ in range(8)]
        until(lambda: app.state.door.admission.taken == 8)
        first.gate.set()
        assert {each.result(10).status_code for each in asked} == {503}

    assert client.post(URL, json=ASK).status_code == 200
    assert len(factory.made) == 2


async def test_whoever_waits_for_a_model_that_is_opened_again_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("calomel.server.loading.WAKE_SECONDS", 0.05)
    gate, factory = Event(), Factory()
    factory.before_next = lambda: gate.wait(10)
    loader = await started(factory)
    loader.stopped(await loader.acquire())
    with pytest.raises(ModelLoadingError):
        await loader.acquire()
    gate.set()
    await opened(loader)
    assert (loader.state, len(factory.made)) == ("ready", 2)
    loader.close()


async def test_a_model_that_does_not_open_again_says_so() -> None:
    def refuse() -> None:
        raise MemoryError

    factory = Factory()
    factory.before_next = refuse
    loader = await started(factory)
    loader.stopped(await loader.acquire())
    with pytest.raises(ModelFailedError):
        await loader.acquire()
    loader.close()
