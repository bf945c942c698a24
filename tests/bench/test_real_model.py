from __future__ import annotations

from pathlib import Path

from calomel.bench.holes import KINDS
from calomel.bench.infill import InfillOptions, run_infill
from calomel.bench.speed import SpeedOptions, run_speed


def test_the_quality_bench_measures_a_checkpoint(checkpoint: Path, heldout: Path) -> None:
    options = InfillOptions(model=checkpoint, threads=1, heldout=heldout, holes_per_kind=2)
    flat = run_infill(options).flat
    assert [flat[f"{kind}.exact_match_n"] for kind in KINDS] == [2] * 5
    assert [flat[f"{kind}.exact_match_left_to_right_n"] for kind in KINDS] == [2] * 5
    # Left to right every token, the end token too, costs one forward.
    assert flat["tokens_per_forward_left_to_right"] == 1.0


def test_the_speed_bench_measures_a_checkpoint(checkpoint: Path, heldout: Path) -> None:
    options = SpeedOptions(
        model=checkpoint,
        threads=1,
        heldout=heldout,
        contexts=(128, 2048),
        answers=(8,),
        cases=2,
    )
    flat = run_speed(options).flat
    assert flat["128.8.warm_p50_ms_n"] == 2
    assert isinstance(flat["128.8.cached_tokens"], float)
    assert flat["128.8.cached_tokens"] > 64
    assert flat["left_out"] == "2k context"
    assert isinstance(flat["peak_memory_mib"], float)
