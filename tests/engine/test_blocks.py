"""Checkpoints that read their context in blocks: cached, batched and cut, they answer as a whole forward does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.engine.conftest import CONFIG, END, MASK, Context, Start
from tests.engine.test_attention import encode, forward
from tests.families.reference.dense import whole_logits

from calomel.engine import DiffusionConfig, ModelConfig, Request, Transformer
from calomel.engine.attention import Piece

BLOCK = 8
HOW: dict[str, Any] = {"max_new_tokens": 20, "canvas_length": BLOCK, "policy": "threshold:0.2", "max_steps": BLOCK}


BLOCKS = replace(
    CONFIG,
    diffusion=DiffusionConfig(MASK, END, max_canvas=BLOCK, verifiable=False, block=BLOCK),
    sliding_window=None,
    layer_types=(),
)


@pytest.fixture
def config() -> ModelConfig:
    return BLOCKS


def test_whole_blocks_that_contexts_share_are_found_and_change_no_answer(
    model: Transformer, context: Context, start: Start
) -> None:
    engine, other = start(model, page_size=2 * BLOCK), (*context[:29], 7, *context[30:])
    reused = []
    for asked in (context[:40], context[:47], context[:48], context[:47], other):  # a keystroke, and one taken back
        result = engine.submit(Request(asked, **HOW)).result()
        assert result.ids == start(model).submit(Request(asked, **HOW)).result().ids
        reused.append(result.cached_tokens)

    assert all(cached % BLOCK == 0 for cached in reused)
    assert reused[2:] == [40, 40, 24]


def test_canvases_behind_typed_blocks_equal_the_whole_forward(model: Transformer, context: Context) -> None:
    ids = [*context[:48], *[MASK] * BLOCK]
    table = encode(model, context[:40], chunk=BLOCK)

    typed = Piece(context[40:48], table, 40, causal=True, read=[7])
    actual = forward(model, [typed, Piece(ids[48:], table, 48, causal=False, read=range(BLOCK))])

    torch.testing.assert_close(actual, whole_logits(model, ids, BLOCK)[47:], atol=1e-5, rtol=1e-5)


def test_a_row_that_is_read_sees_its_own_block_however_long_blocks_are(model: Transformer) -> None:
    block = 64
    diffusion = replace(model.config.diffusion, block=block, max_canvas=2 * block)
    model.config = replace(model.config, diffusion=diffusion)
    ids = torch.randint(0, 90, (3 * block,), generator=torch.Generator().manual_seed(2)).tolist()
    table = encode(model, ids[:block])

    actual = forward(model, [Piece(ids[block:], table, block, causal=False, read=[0, 2 * block - 1])])

    torch.testing.assert_close(actual, whole_logits(model, ids, block)[[block, -1]], atol=1e-5, rtol=1e-5)


def test_canvases_of_several_blocks_answer_the_same_cached_or_not(
    model: Transformer, context: Context, start: Start
) -> None:
    model.config = replace(model.config, diffusion=replace(model.config.diffusion, max_canvas=3 * BLOCK))
    more = {**HOW, "max_new_tokens": 17, "canvas_length": 2 * BLOCK, "max_steps": 64}
    engine = start(model)

    for size in (45, 48):
        first, again = (engine.submit(Request(context[:size], **more)).result() for _ in range(2))

        assert again.ids == first.ids
        assert again.cached_tokens >= 40
