"""What the load bench makes of its observations; and, slowly, the whole of it against the real server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from calomel.bench.bare import Engaged
from calomel.bench.crowd import Asked, Crowd, Typist, asked, crowd, source_address
from calomel.bench.heldout import read_heldout
from calomel.bench.model import PlainMeasure
from calomel.bench.places import Place, make_places
from calomel.bench.served import Served
from calomel.bench.throughput import LoadOptions, flat_figures, run_load
from calomel.bench.wire_client import Reply
from calomel.engine.denoise import StepReport
from calomel.weights import nano_path

PLACE = Place("before", "behind", "typed")


def answered(began: float, seconds: float) -> Asked:
    return Asked(began, seconds, 200, prompt=100, cached=90, tokens=32)


def test_places_have_the_context_that_was_asked_for() -> None:
    measure = PlainMeasure()
    places = make_places(6, 1000, read_heldout(), measure, seed=3)

    sizes = [measure.count(place.prefix) + measure.count(place.suffix) for place in places]
    assert all(700 < size <= 960 for size in sizes)
    assert len({place.prefix for place in places}) == 6
    assert all(place.typed for place in places)


def test_each_request_is_one_key_further_and_begins_anew_behind_the_last() -> None:
    prompts = [PLACE.request(keys)["prompt"] for keys in range(8)]

    assert prompts == [f"before{'typed'[:at]}" for at in (0, 1, 2, 3, 4, 5, 0, 1)]
    assert (PLACE.request(0)["min_tokens"], PLACE.request(0)["max_tokens"], PLACE.request(0)["stop"]) == (32, 32, [])


def test_an_answer_counts_only_while_all_clients_are_there() -> None:
    found = Crowd([[answered(0, 1), answered(1, 1)], [answered(0, 1.5), answered(1.5, 1)]], began=0, seconds=2.0)

    assert found.in_time == 3


def test_refusals_are_told_from_errors() -> None:
    later = asked(Reply(503, {"retry-after": "1"}, b""), 0, 1)
    never = asked(Reply(503, {}, b""), 0, 1)
    broken = asked(Reply(500, {"retry-after": "1"}, b""), 0, 1)
    found = Crowd([[later, never, broken, Asked(0, 1, 0)]])

    assert (found.rejected, found.errors) == (1, 3)


def test_figures_are_of_all_rounds_together() -> None:
    alone = Crowd([[answered(at, 0.1) for at in (0.0, 0.1, 0.2, 0.3)]], began=0, seconds=0.4)
    clients = [[answered(0, seconds), answered(1, seconds)] for seconds in (0.5, 0.5, 1.0)]
    together = Crowd(clients, began=0, seconds=2.0)
    refused = Crowd([[Asked(0, 0.1, 429, later=True), Asked(0, 0.1, 0), answered(0, 1)]], began=0, seconds=1)
    shapes = (StepReport(8, 128, 0), StepReport(4, 80, 16))
    engaged = Engaged(8, 2.0, shapes)

    flat = flat_figures([alone], [together], [engaged], [1.0], refused, 3)

    assert (flat["throughput_1"], flat["throughput_3"], flat["throughput_ratio"]) == (10.0, 3.0, 0.3)
    assert (flat["bare_throughput"], flat["engine_throughput"], flat["batched_limit_share"]) == (8.0, 4.0, 0.375)
    assert (flat["p95_1_ms"], flat["p50_3_ms"], flat["fairness"]) == (100.0, 500.0, 2.0)
    assert (flat["errors"], flat["rejected"], flat["crowded_rejected"], flat["crowded_answered"]) == (1, 0, 1, 1)
    assert (flat["answer_tokens"], flat["cached_share"]) == (32.0, 0.9)
    assert (flat["forwards_per_answer"], flat["requests_per_forward"], flat["rows_per_forward"]) == (0.25, 6.0, 104.0)


def test_clients_come_from_addresses_of_their_own_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")

    assert [source_address("127.0.0.1", number) for number in (0, 255)] == ["127.1.0.1", "127.1.1.0"]
    assert source_address("192.0.2.1", 0) is None


def test_a_server_that_is_not_there_is_an_error_of_each_request(tmp_path: Path) -> None:
    gone = Served("127.0.0.1", 9, "token", 1, tmp_path / "log")

    found = asyncio.run(crowd([Typist(gone, 0, [PLACE])], 0.0, least=2))
    assert (found.errors, found.rejected, len(found.asked)) == (2, 0, 2)


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.skipif(not (nano_path() / "model.safetensors").exists(), reason="no weights")
def test_the_bench_runs_and_no_request_fails(tmp_path: Path) -> None:
    path = tmp_path / "load.json"
    run_load(LoadOptions(clients=4, context=256, quick=True, json=path))

    flat = json.loads(path.read_text())
    assert (flat["errors"], flat["rejected"]) == (0, 0)
    assert flat["throughput_4"] > flat["throughput_1"] > 0
    assert 0.2 < flat["batched_limit_share"] < 1.5
    assert flat["answer_tokens"] == 32
    assert flat["cached_share"] > 0.5
    assert flat["crowded_rejected"] > 0
