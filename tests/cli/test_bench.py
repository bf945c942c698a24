from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calomel.bench import infill as bench_infill
from calomel.bench import peers as bench_peers
from calomel.bench import speed as bench_speed
from calomel.bench.infill import InfillOptions
from calomel.bench.peers import PeersOptions
from calomel.bench.speed import SpeedOptions
from calomel.report.heldout import BenchDataError

Run = Callable[..., Any]


class Bench:
    """Notes what it was asked for; its report is one line."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.written: tuple[Path | None, Path | None] = (None, None)

    def __call__(self, options: object) -> Bench:
        self.asked.append(options)
        return self

    def to_markdown(self) -> str:
        return "# page"

    def write(self, *, json_path: Path | None, results: Path | None) -> None:
        self.written = json_path, results


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    fake = Bench()
    monkeypatch.setattr(bench_infill, "run_infill", fake)
    monkeypatch.setattr(bench_speed, "run_speed", fake)
    return fake


def test_options_reach_the_quality_bench(run: Run, bench: Bench) -> None:
    result = run("bench", "infill", "--quick", "--policy", "fixed:2@4", "--json", "out.json")
    expected = InfillOptions(quick=True, policy="fixed:2@4")
    assert (result.status, result.out, bench.asked) == (0, "# page\n", [expected])
    assert bench.written == (Path("out.json"), None)


def test_options_reach_the_speed_bench(run: Run, bench: Bench) -> None:
    result = run("bench", "speed", "--context", 512, "--answer", 8, "--answer", 32, "--results", "r")
    expected = SpeedOptions(contexts=(512,), answers=(8, 32))
    assert (result.status, result.out, bench.asked) == (0, "# page\n", [expected])
    assert bench.written == (None, Path("r"))


def test_without_options_the_bench_keeps_its_own_defaults(run: Run, bench: Bench) -> None:
    run("bench", "infill")
    run("bench", "speed")
    assert bench.asked == [InfillOptions(), SpeedOptions()]


@pytest.mark.parametrize(
    ("error", "status"),
    [(BenchDataError("heldout.jsonl.zst is damaged"), 1), (ValueError("steps 'x' is no number"), 2)],
)
def test_failure_becomes_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int) -> None:
    def refuse(_: object) -> None:
        raise error

    monkeypatch.setattr(bench_infill, "run_infill", refuse)
    result = run("bench", "infill")
    assert (result.status, result.err) == (status, f"calomel: {error}\n")


def test_missing_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def lack(_: object) -> None:
        raise ModuleNotFoundError("No module named 'zstandard'", name="zstandard")

    monkeypatch.setattr(bench_speed, "run_speed", lack)
    result = run("bench", "speed")
    assert result.status == 1
    assert result.err == "calomel: zstandard is not installed: pip install 'calomel[bench,train]' brings it\n"


def test_options_reach_the_bench_of_peers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Bench()
    monkeypatch.setattr(bench_peers, "run_peers", fake)
    result = run("bench", "peers", "--holes", 8, "--quick")
    assert (result.status, result.out) == (0, "# page\n")
    assert fake.asked == [PeersOptions(quick=True, holes=8)]
