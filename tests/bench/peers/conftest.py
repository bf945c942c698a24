"""A tiny random checkpoint with windows, on disk, and the engine over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from calomel.engine import BlockCausal, DiffusionConfig, Engine, ModelConfig, Transformer
from calomel.engine.checkpoint import save_checkpoint
from calomel.families.loading import load_checkpoint

MASK, END, VOCAB = 95, 96, 97


def random_checkpoint(folder: Path, window: int | None) -> Path:
    config = ModelConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=512,
        diffusion=DiffusionConfig(mask_token_id=MASK, end_token_id=END),
        sliding_window=window,
        layer_types=("full_attention", "sliding_attention", "sliding_attention") if window else (),
    )
    generator = torch.Generator().manual_seed(7)
    model = Transformer(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3, generator=generator)
    with torch.no_grad():  # ours never predicts it, the peers do not know it
        model.embed_tokens.weight[MASK] = 0
    save_checkpoint(model, folder, dtype=torch.float32)
    return folder


@pytest.fixture(params=[None, 12], ids=["full", "windows"])
def window(request: pytest.FixtureRequest) -> int | None:
    value: int | None = request.param
    return value


@pytest.fixture
def checkpoint(tmp_path: Path, window: int | None) -> Path:
    return random_checkpoint(tmp_path / "checkpoint", window)


@pytest.fixture
def engine(checkpoint: Path) -> Iterator[Engine]:
    with Engine(BlockCausal(load_checkpoint(checkpoint), cache_tokens=2048)) as engine:
        yield engine


@pytest.fixture
def prompts() -> tuple[tuple[int, ...], ...]:
    """A prompt, the same with other last tokens, a shorter one, and one that begins otherwise."""
    first = tuple(torch.randint(0, 90, (61,), generator=torch.Generator().manual_seed(1)).tolist())
    return first, (*first[:-3], 5, 6, 7, 8), first[:20], (3, *first[1:])
