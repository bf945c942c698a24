from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.bench.test_infill import count

from calomel.bench import prefill
from calomel.bench.model import LEFT_TO_RIGHT, Attempt, Contender, open_model
from calomel.bench.prefill import Bare, measure_steps
from calomel.bench.speed import SpeedOptions, measure_speed, run_speed
from calomel.engine import Engine
from calomel.engine.attention import Piece, forward
from calomel.families.loading import load_checkpoint
from calomel.report.heldout import HeldoutFile, Hole
from calomel.report.progress import Progress

Files = tuple[HeldoutFile, ...]


@dataclass
class Stopwatch:
    """Remembers prompts: cold ones take 1,000 ms more; left to right takes 10 ms a token, ours 40 ms in all."""

    asked: list[tuple[str, int]] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    weights_hash: str = "w"
    verifiable: bool = True
    engine: Any = field(default_factory=lambda: SimpleNamespace(config=SimpleNamespace(max_position_embeddings=1024)))

    def measure(self, text: str) -> int:
        return count(text)

    def attempt(self, hole: Hole, contender: Contender, context: int) -> Attempt:
        self.asked.append((contender.name, context))
        causal = contender.name == LEFT_TO_RIGHT
        cold = (hole.path or "") not in self.known
        self.known.add(hole.path or "")
        time = 10.0 * hole.max_tokens if causal else 40.0
        return Attempt(
            text="",
            milliseconds=time + 1000.0 * cold,
            kept_tokens=hole.max_tokens,
            forwards=hole.max_tokens if causal else 4,
            prompt_tokens=context,
            cached_tokens=0 if cold else context - 8,
        )


@pytest.fixture
def options() -> SpeedOptions:
    return SpeedOptions(contexts=(64, 128), answers=(8, 32), cases=3)


@pytest.fixture
def long_files(files: Files) -> Files:
    return tuple(replace(file, text=file.text * 4) for file in files)


def test_cold_and_warm_are_told_for_both(options: SpeedOptions, long_files: Files, progress: Progress) -> None:
    subject: Any = Stopwatch()
    flat = measure_speed(options, subject, long_files, progress).flat
    assert (flat["64.32.cold_p50_ms"], flat["64.32.warm_p50_ms"]) == (1040.0, 40.0)
    assert (flat["64.32.cold_p50_ms_left_to_right"], flat["64.32.warm_p95_ms_left_to_right"]) == (1320.0, 320.0)
    assert (flat["128.32.warm_p50_ms"], flat["128.32.warm_p50_ms_n"]) == (40.0, 3)
    # Tokens count that were kept.
    assert (flat["64.32.tokens_per_forward"], flat["64.32.tokens_per_second"]) == (8.0, 800.0)
    assert flat["64.32.tokens_per_second_left_to_right"] == 100.0
    assert (flat["tokens_per_forward"], flat["vs_left_to_right"]) == (5.0, 0.2)
    late = measure_speed(replace(options, seconds=-1.0), subject, long_files, progress).flat
    assert (late["left_out"], late["vs_left_to_right"]) == ("64.8, 64.32, 128.8, 128.32", None)


def test_the_speed_bench_measures_a_checkpoint(checkpoint: Path, heldout: Path) -> None:
    options = SpeedOptions(model=checkpoint, threads=1, heldout=heldout, contexts=(128, 2048), answers=(8,), cases=2)
    flat: Any = run_speed(options).flat
    assert flat["128.8.warm_p50_ms_n"] == 2
    assert flat["128.8.cached_tokens"] > 64
    assert flat["left_out"] == "2k context"
    assert flat["peak_memory_mib"] > 0


def test_a_step_is_measured_beside_what_it_reads_and_multiplies(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefill, "STEP_CONTEXTS", (64, 10**6))
    with open_model(checkpoint, threads=1) as model:
        flat: Any = measure_steps(model)
        assert isinstance(model.engine, Engine)
        weights = model.engine.decoder.weights
    assert {name.split("_")[1] for name in flat} == {"64"}
    assert flat["step_64_8_ms"] > 0
    assert flat["step_64_8_mmul"] >= flat["step_64_1_mmul"] >= round(weights / 1e6, 1)
    assert flat["step_64_8_mb"] == flat["step_64_1_mb"] >= round(weights * 2 / 1e6, 1)


def test_the_bare_forward_tells_what_the_engine_tells(checkpoint: Path) -> None:
    network = load_checkpoint(checkpoint)
    window = network.config.sliding_window or 0
    for size in (window - 1, window + 5, 3 * window + 2):
        ids = [token % 200 for token in range(3, 3 + size)]
        piece = Piece(ids, None, 0, causal=True, read=[size - 1])
        with torch.inference_mode():
            torch.testing.assert_close(Bare(network, compiled=False)(ids), forward(network, [piece])[0])
