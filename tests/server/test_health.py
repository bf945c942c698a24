from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import until
from tests.suggest.test_dead_threads import end_badly

from calomel.suggest.process import dead_threads_logged


def test_while_the_model_loads_the_door_answers_and_says_so(
    open_client: Callable[..., TestClient], filler: Any
) -> None:
    loaded = Event()

    def load() -> Any:
        loaded.wait(10)
        return filler

    client = open_client(ready=False, factory=load)
    health = client.get("/health")
    fim = client.post("/v1/fim/completions", json={"model": "m", "prompt": "x"})
    models = client.get("/v1/models")
    loaded.set()

    assert (health.status_code, health.headers["retry-after"]) == (503, "2")
    assert health.json()["status"] == "loading"
    assert (fim.status_code, fim.headers["retry-after"]) == (503, "2")
    assert (
        fim.json()
        == {"error": health.json()["error"]}
        == {
            "error": {
                "message": "The model is still loading. Please try again shortly.",
                "type": "server_error",
                "param": None,
                "code": "model_loading",
            }
        }
    )
    assert models.status_code == 200


def test_when_the_model_is_there_health_is_ok_without_a_token(open_client: Callable[..., TestClient]) -> None:
    answer = open_client(token=None).get("/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_a_model_that_could_not_be_loaded_is_told_without_its_reason(
    open_client: Callable[..., TestClient], caplog: pytest.LogCaptureFixture
) -> None:
    def load() -> Any:
        raise FileNotFoundError("/home/me/secret-model")

    client = open_client(ready=False, factory=load)
    app: Any = client.app
    while app.state.door.loader.state == "loading":
        pass
    health = client.get("/health")

    assert (health.status_code, health.json()["status"]) == (503, "failed")
    assert health.json()["error"]["code"] == "model_failed"
    assert "secret-model" not in health.text
    assert "/home/me/secret-model" in caplog.text
    assert client.post("/v1/fim/completions", json={"model": "m", "prompt": "x"}).status_code == 503


def test_the_model_is_closed_with_the_server(make_app: Callable[..., Any], filler: Any) -> None:
    with TestClient(make_app(), base_url="http://127.0.0.1") as client:
        client.get("/health")
        assert not filler.closed
    # One that is still on its way is closed by its own thread.
    until(lambda: filler.closed)


def test_a_thread_that_ended_is_told_of(client: TestClient) -> None:
    with dead_threads_logged(logging.getLogger("calomel.server")):
        end_badly("calomel-merge")
        health, status = client.get("/health"), client.get("/calomel/v1/status").json()
    assert (health.status_code, health.json()) == (200, {"status": "degraded"})
    assert [(dead["name"], dead["error"]) for dead in status["dead_threads"]] == [("calomel-merge", "ValueError")]
    assert client.get("/health").json() == {"status": "ok"}
