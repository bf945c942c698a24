from __future__ import annotations

import json
from pathlib import Path

import pytest

from calomel.bench.heldout import HeldoutFile
from calomel.bench.infill import InfillOptions, run_infill
from calomel.bench.quantize import QuantizeOptions, run_quantize


@pytest.mark.slow
def test_every_kind_of_weights_is_asked_for_the_same_holes(checkpoint: Path, heldout: Path, tmp_path: Path) -> None:
    options = QuantizeOptions(
        model=checkpoint,
        threads=1,
        heldout=heldout,
        holes_per_kind=2,
        quick=True,
        results=tmp_path,
        command="calomel bench quantize",
    )
    flat = run_quantize(options).flat

    for kind in ("float32", "bfloat16", "int8", "fp8"):
        assert flat[f"{kind}.exact_match_n"] == 10
        assert isinstance(flat[f"{kind}.step_ms"], float)
    assert flat["float32.same_answers"] == 1.0
    assert flat["float32.exact_match_difference"] == 0.0
    written = json.loads((tmp_path / "bench-quantize.json").read_text(encoding="utf-8"))
    assert written["int8.weights_mib"] == flat["int8.weights_mib"]
    # The embeddings stay as they are: half of the weights of this one.
    assert flat["int8.weights_mib"] < flat["float32.weights_mib"]  # type: ignore[operator]
    assert flat["bfloat16.weights_mib"] == flat["float32.weights_mib"] / 2  # type: ignore[operator]


@pytest.mark.parametrize("kinds", [("int8", "float32"), ("float32", "int4")])
def test_kinds_of_weights_that_are_not_there_are_refused(kinds: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="there are float32, bfloat16, int8, fp8"):
        run_quantize(QuantizeOptions(kinds=kinds))


def test_the_quality_bench_takes_weights_in_eight_bits(
    checkpoint: Path, heldout: Path, files: tuple[HeldoutFile, ...], tmp_path: Path
) -> None:
    options = InfillOptions(
        model=checkpoint,
        threads=1,
        heldout=heldout,
        cache=tmp_path,
        holes_per_kind=2,
        human_eval=False,
        quantize="int8",
    )
    assert run_infill(options).flat["quantize"] == "int8"
