from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from tests.engine.conftest import CONFIG, Context, Naive

from calomel.engine import ModelConfig, Transformer
from calomel.engine.attention import Piece, forward
from calomel.engine.cache import KeyValueBuffer


@pytest.fixture(params=[False, True], ids=["plain", "shifted"])
def config(request: pytest.FixtureRequest) -> ModelConfig:
    """Without a memory: these forwards say nothing of the request that they belong to."""
    return replace(CONFIG, diffusion=replace(CONFIG.diffusion, logit_shift=request.param))


def encode(model: Transformer, tokens: Sequence[int], chunk: int = 1000) -> KeyValueBuffer:
    weight = model.embed_tokens.weight
    buffer = KeyValueBuffer(model.config, len(tokens) + 140, dtype=weight.dtype, device=weight.device)
    for first in range(0, len(tokens), chunk):
        part = tokens[first : first + chunk]
        forward(model, [Piece(part, buffer, first, causal=True)])
        buffer.length += len(part)
    return buffer


def canvas(buffer: KeyValueBuffer, ids: Sequence[int]) -> Piece:
    return Piece(ids, buffer, buffer.length, causal=False, read=range(len(ids)))


@pytest.mark.parametrize(("cached", "size"), [(61, 3), (61, 12), (61, 40), (50, 4), (20, 0)])
def test_rows_behind_cached_chunks_equal_the_whole_forward(
    model: Transformer, context: Context, naive: Naive, cached: int, size: int
) -> None:
    ids = [95] * (size - 1) + [17] * bool(size)
    buffer = encode(model, context[:cached], chunk=7)
    pieces = [Piece(context[cached:], buffer, cached, causal=True, read=range(61 - cached))] if cached < 61 else []
    buffer.length = 61

    actual = forward(model, [*pieces, canvas(buffer, ids)] if size else pieces)

    torch.testing.assert_close(actual, naive(model, context, ids)[cached:], atol=1e-5, rtol=1e-5)


def test_rows_behind_a_context_too_long_for_a_mask_equal_the_whole_forward(model: Transformer, naive: Naive) -> None:
    tokens = torch.randint(0, 90, (2400,), generator=torch.Generator().manual_seed(2)).tolist()
    buffer = encode(model, tokens[:1300])
    buffer.reserve(2400)

    actual = forward(model, [Piece(tokens[1300:], buffer, 1300, causal=True, read=range(1100))])

    torch.testing.assert_close(actual, naive(model, tokens, [])[1300:], atol=1e-4, rtol=1e-4)


def test_requests_of_one_forward_do_not_see_each_other(model: Transformer, context: Context) -> None:
    first, second = encode(model, context), encode(model, context[::-1])
    # The last is a second canvas on the first one's context.
    pieces = [canvas(buffer, [95] * size) for buffer, size in ((first, 5), (second, 9), (first, 14))]

    apart = torch.cat([forward(model, [piece]) for piece in pieces])

    torch.testing.assert_close(forward(model, pieces), apart, atol=1e-5, rtol=1e-5)
