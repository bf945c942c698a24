from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Event
from types import ModuleType
from typing import Any

import pytest
from starlette.testclient import TestClient

from calomel.suggest.completer import CanvasText

FIM, STATUS = "/v1/fim/completions", "/calomel/v1/status"
ASK = {"model": "m", "prompt": "SECRET = "}
CANVASES = [CanvasText(1, "a\u2591", ("a", "\u2591"), (True, False)), CanvasText(2, "a<b>", ("a", "<b>"), (True, True))]


@pytest.mark.parametrize("path", [STATUS, "/calomel/v1/recordings/cmpl-1", "/"])
def test_the_page_and_its_numbers_want_the_token(open_client: Callable[..., TestClient], path: str) -> None:
    assert open_client(token=None).get(path).status_code == 401


def test_an_answer_appears_among_the_recent_ones_in_numbers(client: TestClient) -> None:
    made = client.post(FIM, json=ASK).json()
    answer = client.get(STATUS)

    (entry,) = answer.json()["recent"]
    assert entry.pop("at") == pytest.approx(made["created"], abs=60)
    assert entry == {
        "id": made["id"],
        "route": "fim",
        "prompt_tokens": 24,
        "cached_tokens": 16,
        "completion_tokens": 14,
        "steps": 3,
        "milliseconds": 20.0,
        "finish": "stop",
        "recorded": False,
    }
    assert "SECRET" not in answer.text
    assert "return n" not in answer.text


def test_pace_cache_and_queue_are_of_the_answers_so_far(client: TestClient) -> None:
    for _ in range(3):
        client.post(FIM, json=ASK)

    status = client.get(STATUS).json()
    assert status["pace"]["answers_per_second"] > 0
    assert status["pace"]["p50_ms"] == status["pace"]["p95_ms"] == 20.0
    assert status["cache"]["hit_share"] == pytest.approx(16 / 24)
    assert (status["queue"]["running"], status["queue"]["limit"]) == (0, 128)


def test_suggestions_that_were_not_shown_are_told_by_reason(client: TestClient) -> None:
    app: Any = client.app
    for verdict in ("shown", "low_confidence", "repeated", "low_confidence"):
        app.state.door.metrics.judged(verdict)

    assert client.get(STATUS).json()["suggestions"] == {
        "shown": 1,
        "suppressed": {"low_confidence": 2, "repeated": 1},
    }


def test_the_status_is_there_while_the_model_loads(
    open_client: Callable[..., TestClient], filler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = Event()

    def load() -> Any:
        loaded.wait(10)
        return filler

    client = open_client(ready=False, factory=load)
    with monkeypatch.context() as during:
        during.setitem(sys.modules, "torch", ModuleType("torch"))  # as far as its import has come
        model = client.get(STATUS).json()["model"]
        metrics = client.get("/metrics")
    loaded.set()

    assert (model["state"], model["id"], model["device"]) == ("loading", None, "cpu")
    assert 'calomel_model_state{state="loading"} 1.0' in metrics.text


def test_an_answer_can_be_replayed_where_the_server_records(
    open_client: Callable[..., TestClient], filler: Any
) -> None:
    filler.canvas_states = CANVASES
    client = open_client(record_denoising=True)
    made = client.post(FIM, json=ASK).json()

    status = client.get(STATUS).json()
    assert (status["recording"], status["recent"][0]["recorded"]) == (True, True)
    assert client.get(f"/calomel/v1/recordings/{made['id']}").json() == {
        "id": made["id"],
        "frames": [
            {"step": 1, "pieces": ["a", "\u2591"], "revealed": [True, False]},
            {"step": 2, "pieces": ["a", "<b>"], "revealed": [True, True]},
        ],
    }


def test_nothing_can_be_replayed_where_the_server_does_not_record(client: TestClient, filler: Any) -> None:
    filler.canvas_states = CANVASES
    made = client.post(FIM, json={**ASK, "stream": True, "diffusing": True})
    (entry,) = client.get(STATUS).json()["recent"]

    assert made.status_code == 200
    assert not entry["recorded"]
    answer = client.get(f"/calomel/v1/recordings/{entry['id']}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "recording_not_found")


@pytest.mark.parametrize("name", ["../../etc/passwd", "cmpl-1", "%00", "x" * 500])
def test_a_recording_that_is_not_there_is_an_error_in_the_published_shape(client: TestClient, name: str) -> None:
    answer = client.get(f"/calomel/v1/recordings/{name}")

    assert answer.status_code in {400, 404}
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert name not in answer.text
