"""Tiny random networks that read in both directions, engines on them, and what an answer went through."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.engine.conftest import CONFIG, END, MASK, Context, Start, random

from calomel.engine import Bidirectional, DiffusionConfig, Engine, Request, Result, Transformer

EXPAND = 94
PREFIX = (3, 14, 15, 92, 65, 35, 89, 79, 32, 38, 46)
SUFFIX = (26, 43, 38, 32, 79, 50)


def network(*, shift: bool, seed: int = 7) -> Transformer:
    """A random decoder of three layers, with biases as Qwen2 has them."""
    diffusion = DiffusionConfig(MASK, END, logit_shift=shift, verifiable=False, reads_suffix=True)
    torch.manual_seed(seed)  # of the biases
    own = replace(CONFIG, diffusion=diffusion, qk_norm=False, attention_bias=True, max_position_embeddings=256)
    return random(Transformer(replace(own, sliding_window=None, layer_types=())), seed=seed)


@pytest.fixture(params=[False, True], ids=["plain", "shifted"])
def model(request: pytest.FixtureRequest) -> Transformer:
    return network(shift=request.param)


@pytest.fixture
def start(run: Start) -> Start:
    """Start an engine of a model."""
    return lambda model, options=None, **more: run(Bidirectional(model, options, **more))


def asked(**fields: Any) -> Request:
    """A request on PREFIX, before SUFFIX if no other is given."""
    bounds = {"max_new_tokens": 64, "max_steps": 64, "record_canvases": True}
    return Request(**{"context": PREFIX, "suffix": SUFFIX, **bounds, **fields})


def ask(engine: Engine, **fields: Any) -> tuple[Result, list[Context]]:
    """The answer to it, and its canvas behind every step."""
    handle = engine.submit(asked(**fields))
    return handle.result(60), [state.ids for state in handle.states()]
