"""Tiny random models, a model that follows a script, and the naive references that the engine must equal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.engine.cache_books import check
from torch import Tensor

from calomel.engine import BlockCausal, DiffusionConfig, Engine, ModelConfig, Transformer
from calomel.engine.memory import MemoryConfig

MASK, END, VOCAB = 95, 96, 97

CONFIG = ModelConfig(
    vocab_size=VOCAB,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    max_position_embeddings=1024,
    diffusion=DiffusionConfig(mask_token_id=MASK, end_token_id=END),
    sliding_window=12,
    layer_types=("full_attention", "sliding_attention", "sliding_attention"),
)


@pytest.fixture
def device() -> torch.device:
    return torch.device(os.environ.get("CALOMEL_DEVICE", "cpu"))


# Its tokens stand in the context too.
MEMORY = MemoryConfig(entries=64, width=8, pauses=(36, 78), resumes=4)


@pytest.fixture(params=[False, True, "memory"], ids=["plain", "shifted", "memory"])
def config(request: pytest.FixtureRequest) -> ModelConfig:
    diffusion = replace(CONFIG.diffusion, logit_shift=bool(request.param))
    return replace(CONFIG, diffusion=diffusion, memory=MEMORY if request.param == "memory" else None)


@pytest.fixture
def model(config: ModelConfig, device: torch.device) -> Transformer:
    generator = torch.Generator().manual_seed(7)
    model = Transformer(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3, generator=generator)
    if config.memory is not None:  # a model never answers with the mark of an answer
        model.embed_tokens.weight.data[config.memory.resumes] = 0
    return model.requires_grad_(False).eval().to(device)


@pytest.fixture
def context() -> tuple[int, ...]:
    return tuple(torch.randint(0, 90, (61,), generator=torch.Generator().manual_seed(1)).tolist())


@pytest.fixture
def start(device: torch.device) -> Iterator[Callable[..., Engine]]:
    """Start an engine that is closed, its cache checked, at the end of the test."""
    engines: list[Engine] = []

    def build(model: Transformer, **options: Any) -> Engine:
        own = {name: options.pop(name) for name in ("max_batch", "prefill_seconds") if name in options}
        engines.append(
            Engine(BlockCausal(model.to(device), **{"cache_tokens": 2048, "spare_tokens": 1 << 20, **options}), **own)
        )
        return engines[-1]

    yield build
    for engine in engines:
        engine.close()
        assert isinstance(engine.decoder, BlockCausal)
        check(engine.decoder.cache)


def explicit_mask(context: int, canvas: int, window: int | None, device: torch.device) -> Tensor:
    """[T, T] bool: causal context, canvas that sees all; with a window on everything but the canvas itself."""
    place = torch.arange(context + canvas, device=device)
    query, key = place[:, None], place[None]
    in_canvas = (query >= context) & (key >= context)
    near = query - key < window if window else torch.ones_like(in_canvas)
    return ((query >= key) & near) | in_canvas


def text_up_to(row: int, tokens: list[int], memory: MemoryConfig) -> list[int]:
    """The text that ends with `row`, token by token: a mark before an answer skips back to where the text paused."""
    if row < 0:
        return []
    if tokens[row] != memory.resumes:
        return [*text_up_to(row - 1, tokens, memory), tokens[row]]
    paused = next((at for at in range(row) if tokens[at] in memory.pauses), row)
    return text_up_to(paused - 1, tokens, memory)


@pytest.fixture
def naive() -> Callable[[Transformer, list[int], list[int]], Tensor]:
    """Logits [T, V] of context and canvas in one forward without any cache, attention written out."""

    def logits(model: Transformer, context: list[int], canvas: list[int]) -> Tensor:
        device = model.embed_tokens.weight.device

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            groups = q.shape[1] // k.shape[1]
            k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
            scores = torch.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
            mask = explicit_mask(len(context), len(canvas), model.config.window(layer), device)
            return torch.einsum("hqk,khd->qhd", scores.masked_fill(~mask, -torch.inf).softmax(-1), v)

        ids = torch.tensor([*context, *canvas], device=device)
        memory, tokens = model.config.memory, ids.tolist()
        if memory is None:
            return model.logits(model(ids, torch.arange(len(ids), device=device), attend))
        text = [[0, 0, *text_up_to(row, tokens, memory)][-3:] for row in range(len(tokens))]
        return model.logits(
            model(ids, torch.arange(len(ids), device=device), attend, torch.tensor(text, device=device))
        )

    return logits


class Scripted(Transformer):
    """Predicts `answer` behind `context` tokens, whatever it reads, with the confidences it is told.

    Where the answer is over it predicts the end token. Causal rows follow `causal` where it is given.
    """

    def __init__(self, context: int, answer: list[int], config: ModelConfig = CONFIG) -> None:
        super().__init__(config)
        self.context = context
        self.answer = answer
        self.causal = answer
        self.confidence: Callable[[int, int], float] = lambda place, step: 0.99
        self.canvas_step = 0

    def forward(self, ids: Tensor, positions: Tensor, attend: object, text: Tensor | None = None) -> Tensor:
        del attend, text
        self.canvas_step += bool((ids == MASK).any())
        return torch.stack((ids.float(), positions.float()), dim=-1)

    def logits(self, hidden: Tensor) -> Tensor:
        rows = torch.full((len(hidden), VOCAB), -30.0)
        for row, (token, position) in zip(rows, hidden.tolist(), strict=True):
            own = token == MASK and not self.config.diffusion.logit_shift
            place = int(position) - self.context + (0 if own else 1)
            script = self.answer if token == MASK else self.causal
            chosen = script[place] if place < len(script) else END
            probability = self.confidence(place, self.canvas_step)
            row[:] = torch.log(torch.tensor((1 - probability) / (VOCAB - 2)))  # the mask token has no share
            row[chosen] = torch.log(torch.tensor(probability))
        return rows.to(hidden.device)


@pytest.fixture
def scripted() -> Callable[..., Scripted]:
    return Scripted
