"""What the load bench makes of its observations; and, slowly, the whole of it against the real server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from calomel.bench import load
from calomel.bench.keystrokes import run_keystrokes
from calomel.bench.served import Served
from calomel.report.heldout import read_heldout
from calomel.weights import nano_path

PLACE = load.Place("before", "behind", "typed")


def test_places_have_about_the_context_that_was_asked_for() -> None:
    places = load.make_places(6, 1000, read_heldout(), seed=3)
    assert all(1500 < len(place.prefix) + len(place.suffix) <= 3000 for place in places)
    assert len({place.prefix for place in places}) == 6
    assert all(place.typed for place in places)
    assert places == load.make_places(6, 1000, read_heldout(), seed=3)


def test_a_server_that_is_not_there_is_an_error_of_each_request(tmp_path: Path) -> None:
    gone = Served("http://127.0.0.1:9", "token", 1, tmp_path / "log")
    found = asyncio.run(load.crowd(gone, [PLACE, PLACE], 0.0))
    assert (found.errors, found.rejected, len(found.asked)) == (2, 0, 2)


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.skipif(not (nano_path() / "model.safetensors").exists(), reason="no weights")
def test_the_bench_runs_and_leaves_nothing_behind() -> None:
    flat: Any = load.run_load(load.LoadOptions(clients=4, context=256, minutes=0.1, max_requests=8, quick=True)).flat
    assert (flat["errors"], flat["rejected"], flat["places_left"]) == (0, 0, 0)
    assert flat["files_left"] <= 0
    assert flat["throughput"] > 0
    assert flat["cached_share"] > 0.5
    assert flat["person_most_ms"] is not None


@pytest.mark.e2e
@pytest.mark.slow
def test_keystrokes_are_measured_through_the_real_programs() -> None:
    figures: Any = run_keystrokes(quick=True).flat
    for name in ("change_p50_ms", "change_p99_ms", "suggest_2k_p50_ms", "suggest_8k_p50_ms", "suggest_8k_p95_ms",
                 "initialize_ms", "first_suggestion_ms"):  # fmt: skip
        assert figures[name] > 0, name
    assert 0.9 < figures["prefix_reuse"] <= 1
    for name in ("prefix_reuse_settled", "prefix_reuse_jump"):
        assert 0 <= figures[name] <= 1, name
