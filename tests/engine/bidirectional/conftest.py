"""Tiny random networks that read in both directions, engines on them, and what an answer went through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from calomel.engine import (
    Bidirectional,
    BidirectionalOptions,
    DiffusionConfig,
    Engine,
    ModelConfig,
    Request,
    Result,
    Transformer,
)

MASK, END, EXPAND, VOCAB = 95, 96, 94, 97
PREFIX = (3, 14, 15, 92, 65, 35, 89, 79, 32, 38, 46)
SUFFIX = (26, 43, 38, 32, 79, 50)


def network(*, shift: bool, seed: int = 7, scale: float = 0.3) -> Transformer:
    """A random decoder of three layers, with biases as Qwen2 has them."""
    config = ModelConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=256,
        diffusion=DiffusionConfig(
            mask_token_id=MASK, end_token_id=END, logit_shift=shift, verifiable=False, reads_suffix=True
        ),
        qk_norm=False,
        attention_bias=True,
    )
    generator = torch.Generator().manual_seed(seed)
    model = Transformer(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=scale, generator=generator)
    return model.requires_grad_(False).eval()


@pytest.fixture(params=[False, True], ids=["plain", "shifted"])
def model(request: pytest.FixtureRequest) -> Transformer:
    return network(shift=request.param)


@pytest.fixture
def start() -> Iterator[Callable[..., Engine]]:
    """Start an engine that is closed at the end of the test."""
    engines: list[Engine] = []

    def build(model: Transformer, options: BidirectionalOptions | None = None, **more: Any) -> Engine:
        engines.append(Engine(Bidirectional(model, options, **more)))
        return engines[-1]

    yield build
    for engine in engines:
        engine.close()


def ask(engine: Engine, **fields: Any) -> tuple[Result, list[tuple[int, ...]]]:
    """The answer to a request on PREFIX, and its canvas behind every step."""
    fields = {"context": PREFIX, "record_canvases": True, "max_new_tokens": 64, "max_steps": 64, **fields}
    handle = engine.submit(Request(**fields))
    return handle.result(60), [state.ids for state in handle.states()]
