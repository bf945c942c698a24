"""Checkpoints that read their context in blocks: cached, batched and cut, they answer as a whole forward does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from tests.engine.conftest import CONFIG, END, MASK, Ask, Context, Start, check
from tests.engine.test_attention import FakeFlash, canvas, encode
from tests.families.reference.dense import whole_logits

from calomel.engine import DiffusionConfig, ModelConfig, Request, Transformer
from calomel.engine.attention import Piece, forward
from calomel.engine.cache import KeyValueBuffer, PrefixCache
from calomel.engine.errors import InvalidRequestError

BLOCK, RUN = 8, 4
HOW: dict[str, Any] = {"max_new_tokens": 20, "canvas_lengths": (BLOCK,), "policy": "threshold:0.2", "max_steps": BLOCK}


def blocks(*, shift: bool) -> ModelConfig:
    run = RUN if shift else None
    diffusion = DiffusionConfig(
        MASK, END, logit_shift=shift, max_canvas=BLOCK, verifiable=False, block=BLOCK, sub_block=run
    )
    return replace(CONFIG, diffusion=diffusion, sliding_window=None, layer_types=())


BLOCKS = (blocks(shift=False), blocks(shift=True))


@pytest.fixture(params=BLOCKS, ids=["plain", "shifted"])
def config(request: pytest.FixtureRequest) -> ModelConfig:
    found: ModelConfig = request.param
    return found


@pytest.mark.parametrize(("cached", "masks"), [(56, 6), (40, 24)])
def test_cached_blocks_equal_a_whole_forward(model: Transformer, context: Context, cached: int, masks: int) -> None:
    ids = [*context[: cached + -masks % BLOCK], *[MASK] * masks]

    actual = forward(model, [canvas(encode(model, ids[:cached], chunk=16), ids[cached:])])

    torch.testing.assert_close(actual, whole_logits(model, ids, BLOCK)[cached:], atol=1e-5, rtol=1e-5)


def test_whole_blocks_that_contexts_share_are_found_and_change_no_answer(
    model: Transformer, context: Context, start: Start
) -> None:
    engine, other = start(model, page_size=4), (*context[:29], 7, *context[30:])
    reused = []
    for asked in (context[:40], context[:47], context[:48], context[:47], other):  # a keystroke, and one taken back
        result = engine.submit(Request(asked, **HOW)).result()
        assert result.ids == start(model).submit(Request(asked, **HOW)).result().ids
        reused.append(result.cached_tokens)

    assert all(cached % BLOCK == 0 for cached in reused)
    assert reused[2:] == [40, 40, 24]


def test_the_last_step_of_a_canvas_reveals_all_of_it(ask: Ask, context: Context) -> None:
    few = {**HOW, "policy": "fixed:1", "max_steps": 2}

    result = ask(context=context[:45], min_new_tokens=20, **few)

    assert len(result.ids) == 20
    assert MASK not in result.ids
    assert result.steps <= 2 * 4


def test_flash_attention_takes_the_canvases_and_leaves_long_contexts(model: Transformer, context: Context) -> None:
    flash = FakeFlash()
    ids = [*context[:48], *[MASK] * BLOCK]

    plain = encode(model, context[:48])
    buffer = encode(model, context[:48], flash=flash)
    assert not flash.calls
    typed = Piece(context[40:48], buffer, 40, causal=True, read=[7])
    actual = forward(model, [typed, canvas(buffer, ids[48:])], flash)

    assert {causal for causal, _, _ in flash.calls} == {False}
    torch.testing.assert_close(buffer.keys[:, :48], plain.keys[:, :48], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(actual, whole_logits(model, ids, BLOCK)[47:], atol=1e-5, rtol=1e-5)


def test_pages_hold_whole_blocks(model: Transformer) -> None:
    with pytest.raises(InvalidRequestError, match="multiple of the block, 8"):
        PrefixCache(model.config, pages=4, page_size=12, dtype=torch.float32, device=torch.device("cpu"))


def test_canvases_of_several_blocks_answer_the_same_cached_or_not(
    model: Transformer, context: Context, start: Start
) -> None:
    model.config = replace(model.config, diffusion=replace(model.config.diffusion, max_canvas=3 * BLOCK))
    more = {**HOW, "max_new_tokens": 17, "canvas_lengths": (BLOCK, 2 * BLOCK), "max_steps": 64}
    engine = start(model)

    for size in (45, 48):
        first, again = (engine.submit(Request(context[:size], **more)).result() for _ in range(2))

        assert again.ids == first.ids
        assert again.cached_tokens >= 40
        assert (size + first.canvas_length) % BLOCK == 0
        assert len(first.length_scores) == 2


@settings(max_examples=30, deadline=None)
@given(contexts=st.lists(st.lists(st.integers(0, 1), max_size=30).map(tuple), min_size=2, max_size=6))
def test_what_the_cache_returns_was_computed_from_the_same_blocks(contexts: list[Context]) -> None:
    config = ModelConfig(10, 4, 4, 1, 1, 1, 2, 64, DiffusionConfig(8, 9, verifiable=False, block=4))
    cache = PrefixCache(config, pages=40, page_size=8, dtype=torch.float32, device=torch.device("cpu"))
    for tokens in contexts:
        whole = tokens[: len(tokens) // 4 * 4]
        # Stands for what a model computes: each row depends on all tokens up to the end of its block.
        rows = torch.tensor([float(hash(whole[: row // 4 * 4 + 4]) % 10_007) for row in range(len(whole))])
        buffer = KeyValueBuffer(config, 64, dtype=torch.float32, device=torch.device("cpu"))
        lease = cache.acquire(whole, buffer)
        assert lease.length % 4 == 0
        assert buffer.keys[0, : lease.length, 0, 0].tolist() == rows[: lease.length].tolist()
        buffer.keys[:, : len(whole)] = rows[:, None, None]
        buffer.values[:, : len(whole)] = rows[:, None, None]
        cache.store(lease, whole, buffer)
        check(cache)
        cache.release(lease)
