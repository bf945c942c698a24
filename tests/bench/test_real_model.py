from __future__ import annotations

from pathlib import Path

import pytest
import torch

from calomel.bench.heldout import HeldoutFile
from calomel.bench.holes import KINDS
from calomel.bench.infill import InfillOptions, run_infill
from calomel.bench.speed import SpeedOptions, run_speed
from calomel.engine import DiffusionConfig, ModelConfig, Transformer, save_checkpoint
from calomel.training.tokenizer import train_tokenizer


@pytest.fixture
def checkpoint(files: tuple[HeldoutFile, ...], tmp_path: Path) -> Path:
    """A tiny model with random weights: what it answers is nonsense, but everything around it is real."""
    folder = tmp_path / "checkpoint"
    tokenizer = train_tokenizer([file.text for file in files], folder / "tokenizer.json", vocab_size=400)
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=1024,
        diffusion=DiffusionConfig(mask_token_id=tokenizer.mask, end_token_id=tokenizer.end),
    )
    torch.manual_seed(7)
    save_checkpoint(Transformer(config), folder)
    return folder


def test_the_quality_bench_measures_a_checkpoint(checkpoint: Path, heldout: Path, tmp_path: Path) -> None:
    options = InfillOptions(
        model=checkpoint, threads=1, heldout=heldout, cache=tmp_path, holes_per_kind=2, human_eval=False
    )
    flat = run_infill(options).flat
    assert [flat[f"{kind}.exact_match_n"] for kind in KINDS] == [2] * 5
    assert [flat[f"{kind}.exact_match_left_to_right_n"] for kind in KINDS] == [2] * 5
    # Left to right every token, the end token too, costs one forward.
    assert flat["tokens_per_forward_left_to_right"] == 1.0


def test_the_speed_bench_measures_a_checkpoint(checkpoint: Path, heldout: Path, tmp_path: Path) -> None:
    options = SpeedOptions(
        model=checkpoint,
        threads=1,
        heldout=heldout,
        cache=tmp_path,
        contexts=(128, 2048),
        answers=(8,),
        cases=2,
        bf16=False,
    )
    flat = run_speed(options).flat
    assert flat["128.8.warm_p50_ms_n"] == 2
    assert isinstance(flat["128.8.cached_tokens"], float)
    assert flat["128.8.cached_tokens"] > 64
    assert flat["left_out"] == "2k context"
    assert isinstance(flat["peak_memory_mib"], float)
