"""What Prometheus reads: parsed by its own client library."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

FIM = "/v1/fim/completions"
ASK = {"model": "m", "prompt": "def f(n):\n    "}


def scraped(client: TestClient) -> dict[tuple[str, ...], float]:
    """Samples by their name and the values of their labels."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_metrics_want_the_token(open_client: Callable[..., TestClient]) -> None:
    assert open_client(token=None).get("/metrics").status_code == 401


def test_metrics_are_prometheus_text(client: TestClient) -> None:
    assert client.get("/metrics").headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_requests_are_counted_by_route_and_status(client: TestClient) -> None:
    for body in (ASK, ASK, {"model": "m"}):
        client.post(FIM, json=body)

    found = scraped(client)
    assert found["calomel_requests_total", FIM, "200"] == 2
    assert found["calomel_requests_total", FIM, "400"] == 1
    assert found["calomel_request_seconds_count", FIM] == 3
    assert found["calomel_requests_running",] == 0


def test_a_route_with_a_parameter_is_counted_once_and_not_once_for_each_value(client: TestClient) -> None:
    for number in range(5):
        client.get(f"/calomel/v1/recordings/{number}")

    assert scraped(client)["calomel_requests_total", "/calomel/v1/recordings/{completion_id}", "404"] == 5


@pytest.mark.parametrize("path", ["/nothing", "/v1/fim/completions/", "/%0a%00", "/x" * 500])
def test_unknown_paths_make_no_series_of_their_own(client: TestClient, path: str) -> None:
    client.get(path)

    found = scraped(client)
    assert found["calomel_requests_total", "none", "404"] == 1
    assert not any(path in label for labels in found for label in labels)


def test_requests_without_a_token_are_counted(open_client: Callable[..., TestClient]) -> None:
    client = open_client()
    assert client.get(FIM, headers={"authorization": "Bearer wrong"}).status_code == 401

    assert scraped(client)["calomel_requests_total", "none", "401"] == 1


def test_tokens_steps_and_cached_tokens_of_answers_are_counted(client: TestClient) -> None:
    for _ in range(2):
        client.post(FIM, json=ASK)

    found = scraped(client)
    counted = ("prompt_tokens", "cached_tokens", "completion_tokens", "denoising_steps")
    assert [found[f"calomel_{name}_total",] for name in counted] == [48, 32, 28, 6]
    assert found["calomel_steps_per_token_sum",] == pytest.approx(2 * 3 / 14)


def test_a_stream_is_counted_when_it_ends(client: TestClient) -> None:
    client.post(FIM, json={**ASK, "stream": True})

    found = scraped(client)
    assert found["calomel_requests_total", FIM, "200"] == 1
    assert found["calomel_completion_tokens_total",] == 14


def test_edits_are_counted_as_shown_or_by_the_reason_of_the_silence(client: TestClient) -> None:
    app: Any = client.app
    for verdict in ("shown", "low_confidence", "low_confidence"):
        app.state.door.metrics.judged(verdict)

    found = scraped(client)
    assert found["calomel_suggestions_total", "shown"] == 1
    assert found["calomel_suggestions_total", "low_confidence"] == 2


def test_the_state_of_the_model_is_one_of_all_states(client: TestClient) -> None:
    found = scraped(client)

    states = {name[1]: value for name, value in found.items() if name[0] == "calomel_model_state"}
    assert states == {"loading": 0, "ready": 1, "failed": 0, "unloaded": 0}


def test_uptime_and_memory_are_there(client: TestClient) -> None:
    found = scraped(client)

    assert found["calomel_uptime_seconds",] > 0
    assert found["calomel_resident_memory_bytes",] > 1_000_000
    assert found["calomel_requests_limit",] == 128


def test_queue_and_cache_of_the_engine_are_read(client: TestClient, filler: Any) -> None:
    class Cache:
        pages, free_pages, page_size = 100, 40, 16

    class Engine:
        decoder, occupancy = SimpleNamespace(cache=Cache()), (8, 3)

    filler.engine = Engine()

    found = scraped(client)
    assert (found["calomel_engine_requests", "running"], found["calomel_engine_requests", "waiting"]) == (8, 3)
    assert (found["calomel_cache_tokens",], found["calomel_cache_capacity_tokens",]) == (960, 1600)


def test_no_sample_has_words_of_a_client(client: TestClient) -> None:
    client.post(FIM, json={**ASK, "model": "SECRETMODEL", "prompt": "SECRETPROMPT"}, headers={"x-secret": "SECRETHEAD"})

    assert "SECRET" not in client.get("/metrics").text
