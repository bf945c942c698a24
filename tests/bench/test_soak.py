from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from calomel.bench.places import Place
from calomel.bench.soak import Sample, Soaked, SoakOptions, do, flat_figures, look, over_time, run_soak
from calomel.bench.traffic import WEIGHTS, Deed, Traffic
from calomel.bench.wire_client import Reply, WireError
from calomel.prompts.foreign.mercury import parse_mercury
from calomel.weights import nano_path

PLACE = Place("def f():\n    x = 1\n", "\n    return x\n", "y = 2\nz")


class Wire:
    """Answers with a status, or raises."""

    def __init__(self, outcome: int | Exception) -> None:
        self._outcome = outcome
        self.dropped = 0

    async def post(self, *_: Any) -> Reply:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return Reply(self._outcome, {}, b"")

    get = send = post

    def drop(self) -> None:
        self.dropped += 1


def done(deed: Deed, outcome: int | Exception) -> tuple[Soaked, Wire]:
    soaked, wire = Soaked(), Wire(outcome)
    asyncio.run(do(wire, deed, soaked, 0.0))  # type: ignore[arg-type]
    return soaked, wire


def test_every_kind_of_deed_is_done_as_often_as_it_says() -> None:
    traffic = Traffic((PLACE,), seed=1)
    kinds = Counter(traffic.deed().kind for _ in range(4000))

    assert sum(WEIGHTS.values()) == 100
    assert {kind: round(count / 40) for kind, count in kinds.items()} == pytest.approx(WEIGHTS, abs=3)


def test_the_edits_are_prompts_that_the_server_understands() -> None:
    traffic = Traffic((PLACE,), seed=1)
    deed = next(deed for _ in range(200) if (deed := traffic.deed()).kind == "edit")

    prompt = parse_mercury(json.loads(deed.body)["messages"][0]["content"])
    assert prompt.region.startswith("y = 2")
    assert PLACE.prefix in prompt.prefix


def test_a_right_answer_is_counted_and_a_fill_is_timed() -> None:
    soaked, _ = done(Deed("fill", "/"), 200)

    assert (soaked.wrong, soaked.hung, len(soaked.fills)) == (Counter(), 0, 1)


@pytest.mark.parametrize("outcome", [500, 404, WireError("gone")])
def test_a_wrong_answer_or_none_is_an_error(outcome: int | Exception) -> None:
    soaked, _ = done(Deed("fill", "/"), outcome)

    assert sum(soaked.wrong.values()) == 1
    assert soaked.fills == []


def test_an_answer_that_never_comes_is_counted_apart() -> None:
    soaked, wire = done(Deed("fill", "/"), TimeoutError())

    assert (soaked.hung, wire.dropped, soaked.wrong) == (1, 1, Counter())


def test_to_be_told_to_come_later_is_no_error() -> None:
    soaked, _ = done(Deed("edit", "/"), 503)

    assert (soaked.wrong, soaked.rejected) == (Counter(), {"edit 503": 1})


def test_who_leaves_hangs_up_and_expects_nothing() -> None:
    soaked, wire = done(Deed("leave", "/", stays=0.0), 500)

    assert (wire.dropped, soaked.wrong) == (1, Counter())


def test_a_process_is_looked_at_by_what_the_system_says(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    for name in ("fd/0", "fd/1", "task/7"):
        (folder / name).mkdir(parents=True)
    (folder / "statm").write_text("100 256 1 1 1 1 1\n")

    sample = look(7, 3.0, tmp_path, cache=0.5)
    assert (sample.at, sample.files, sample.threads, sample.cache) == (3.0, 2, 1, 0.5)
    assert sample.memory == pytest.approx(1.0, rel=20)
    assert look(8, 3.0, tmp_path) == Sample(3.0, 0.0, 0, 0)


def test_growth_is_counted_from_when_caches_are_full() -> None:
    samples = [Sample(at, 100 + (min(20, at)) + (5 if at >= 80 else 0), 12, 4) for at in range(100)]
    soaked = Soaked(samples=samples, before=Sample(0, 100, 10, 4), after=Sample(100, 125, 11, 4), seconds=100.0)
    soaked.deeds.update(fill=50, leave=10)
    soaked.fills = [(float(at), 10.0 if at < 80 else 20.0) for at in range(100)]

    flat = flat_figures(soaked)
    assert (flat["memory_start_mib"], flat["memory_warm_mib"], flat["memory_growth_mib"]) == (100, 120, 5)
    assert (flat["files_left"], flat["files_most"], flat["left"], flat["requests"]) == (1, 12, 10, 60)
    assert (flat["p95_early_ms"], flat["p95_late_ms"]) == (10.0, 20.0)
    assert len(over_time(soaked).rows) == 10


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.skipif(not (nano_path() / "model.safetensors").exists(), reason="no weights")
def test_mixed_traffic_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "soak.json"
    run_soak(SoakOptions(minutes=0.3, clients=4, json=path))

    flat = json.loads(path.read_text())
    assert (flat["errors"], flat["hung"], flat["places_left"], flat["wrong"]) == (0, 0, 0, {})
    assert flat["files_left"] <= 0
    assert flat["requests"] > 20
