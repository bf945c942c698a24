"""Checkpoints that read their context in blocks: cached, batched and cut, they answer as a whole forward does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from tests.engine.cache_books import check
from tests.engine.conftest import CONFIG, END, MASK
from tests.engine.test_attention import FakeFlash
from tests.families.reference import block_diffusion as published
from tests.families.reference.dense import whole_logits

from calomel.engine import (
    CheckpointError,
    DiffusionConfig,
    Engine,
    ModelConfig,
    Request,
    Result,
    SamplingParams,
    Transformer,
)
from calomel.engine.attention import Piece, forward
from calomel.engine.cache import KeyValueBuffer, PrefixCache
from calomel.engine.errors import InvalidRequestError, PolicyUnavailableError
from calomel.engine.policies import parse_policy

Start = Callable[..., Engine]
BLOCK, RUN = 8, 4


@pytest.fixture(params=[False, True], ids=["plain", "shifted"])
def config(request: pytest.FixtureRequest) -> ModelConfig:
    diffusion = DiffusionConfig(
        MASK,
        END,
        logit_shift=request.param,
        max_canvas=BLOCK,
        verifiable=False,
        block=BLOCK,
        sub_block=RUN if request.param else None,
    )
    return replace(CONFIG, diffusion=diffusion, sliding_window=None, layer_types=())


def expected(model: Transformer, context: Sequence[int], room: int, threshold: float = 0.2) -> published.Trace:
    def logits(ids: list[int]) -> torch.Tensor:
        return whole_logits(model, ids, BLOCK)

    order = published.above(threshold)
    if model.config.diffusion.logit_shift:
        return published.denoise_shifted(logits, context, room, order, block=BLOCK, run=RUN, mask=MASK, end=END)
    return published.denoise(logits, context, room, order, block=BLOCK, mask=MASK, end=END)


def ask(context: Sequence[int], room: int = 20, **fields: Any) -> Request:
    return Request(
        tuple(context),
        room,
        **{"canvas_lengths": (BLOCK,), "policy": "threshold:0.2", "max_steps": BLOCK, **fields},
    )


def encode(model: Transformer, tokens: Sequence[int], chunk: int = 1000, flash: Any = None) -> KeyValueBuffer:
    buffer = KeyValueBuffer(model.config, 200, dtype=torch.float32, device=model.embed_tokens.weight.device)
    for first in range(0, len(tokens), chunk):
        part = tokens[first : first + chunk]
        forward(model, [Piece(part, buffer, first, causal=True)], flash)
        buffer.length += len(part)
    return buffer


def test_cached_blocks_equal_a_whole_forward(model: Transformer, context: tuple[int, ...]) -> None:
    ids = [*context[:56], 3, 4, MASK, MASK, MASK, MASK, MASK, MASK]

    buffer = encode(model, ids[:56], chunk=16)
    actual = forward(model, [Piece(ids[56:], buffer, 56, causal=False, read=range(BLOCK))])

    torch.testing.assert_close(actual, whole_logits(model, ids, BLOCK)[56:], atol=1e-5, rtol=1e-5)


def test_a_canvas_of_several_blocks_sees_itself_block_by_block(model: Transformer, context: tuple[int, ...]) -> None:
    ids = [*context[:40], *[MASK] * 24]

    actual = forward(model, [Piece(ids[40:], encode(model, ids[:40]), 40, causal=False, read=range(24))])

    torch.testing.assert_close(actual, whole_logits(model, ids, BLOCK)[40:], atol=1e-5, rtol=1e-5)


def test_a_token_changes_the_keys_of_its_own_block_and_of_later_ones_alone(
    model: Transformer, context: tuple[int, ...]
) -> None:
    changed = [*context[:27], context[27] + 1, *context[28:40]]

    keys, others = encode(model, context[:40]).keys[-1, :40], encode(model, changed).keys[-1, :40]
    differs = ((keys - others).abs().amax(dim=(1, 2)) > 1e-6).tolist()

    assert differs == [False] * 24 + [True] * 16


@pytest.mark.parametrize("size", [3, BLOCK, BLOCK + 1, 45, 48])
def test_steps_and_answer_equal_the_published_loop(
    model: Transformer, context: tuple[int, ...], start: Start, size: int
) -> None:
    trace = expected(model, context[:size], 20)

    handle = start(model).submit(ask(context[:size], record_canvases=True))
    states = [list(state.ids) for state in handle.states()]

    assert list(handle.result().ids) == published.answer(trace.tokens, 20, END)
    assert len(trace.steps) >= len(states) > 2
    assert states[:-1] == trace.steps[: len(states) - 1]
    assert states[-1] == trace.steps[len(states) - 1][: len(states[-1])]


def test_what_is_cached_changes_no_answer(model: Transformer, context: tuple[int, ...], start: Start) -> None:
    engine = start(model, page_size=4)
    wanted = {size: start(model).submit(ask(context[:size])).result().ids for size in (40, 47, 48)}

    reused = {}
    for size in (40, 47, 48, 47):  # a keystroke each, and one taken back
        result = engine.submit(ask(context[:size])).result()
        assert result.ids == wanted[size]
        reused[size] = result.cached_tokens

    assert all(cached % BLOCK == 0 for cached in reused.values())
    assert reused[47] == 40
    assert reused[48] == 40


def test_a_context_that_parts_within_a_block_shares_the_blocks_before_it(
    model: Transformer, context: tuple[int, ...], start: Start
) -> None:
    other = (*context[:29], 7, *context[30:])
    wanted = start(model).submit(ask(other)).result().ids

    engine = start(model)
    engine.submit(ask(context)).result()
    result = engine.submit(ask(other)).result()

    assert result.ids == wanted
    assert result.cached_tokens == 24


@pytest.mark.parametrize("chunk", [1, 12, 16])
def test_chunks_of_the_context_change_no_answer(
    model: Transformer, context: tuple[int, ...], start: Start, chunk: int
) -> None:
    wanted = start(model).submit(ask(context)).result().ids

    assert start(model, prefill_chunk=chunk).submit(ask(context)).result().ids == wanted


def test_requests_side_by_side_are_answered_as_alone(
    model: Transformer, context: tuple[int, ...], start: Start
) -> None:
    requests = [ask(context[: 30 + 5 * index], 8 + index) for index in range(4)]
    alone = [start(model).submit(request).result().ids for request in requests]

    handles = start(model, prefill_chunk=16).submit_all(requests)

    assert [handle.result().ids for handle in handles] == alone


def test_frozen_tokens_stay_across_blocks(model: Transformer, context: tuple[int, ...], start: Start) -> None:
    frozen = {0: 11, 3: 12, 4: 13, 13: 14}

    result = start(model).submit(ask(context, frozen=frozen)).result()

    assert {place: result.ids[place] for place in frozen} == frozen


class OnlyEven:
    """A constraint that allows even tokens alone, and an end behind four."""

    def __init__(self) -> None:
        self.count = 0

    def begin(self) -> OnlyEven:
        return OnlyEven()

    def advance(self, ids: Sequence[int]) -> int:
        good = next((index for index, token in enumerate(ids) if token % 2), len(ids))
        self.count += good
        return good

    def allowed(self) -> bytes:
        return bytes([0b01010101] * 12) + b"\x00"

    def forced(self) -> tuple[int, ...]:
        return ()

    def may_end(self) -> bool:
        return self.count >= 4


@pytest.mark.parametrize("size", [48, 53])
def test_a_constraint_has_the_last_word_in_every_block(
    model: Transformer, context: tuple[int, ...], start: Start, size: int
) -> None:
    result = start(model).submit(ask(context[:size], constraint=OnlyEven())).result()

    assert len(result.ids) >= 4
    assert all(token % 2 == 0 for token in result.ids)


def test_until_is_asked_whenever_more_of_the_answer_is_settled(
    model: Transformer, context: tuple[int, ...], start: Start
) -> None:
    seen: list[int] = []

    def enough(ids: Sequence[int]) -> bool:
        seen.append(len(ids))
        return len(ids) > 8

    result = start(model).submit(ask(context, 40, min_new_tokens=40, until=enough)).result()

    assert seen == sorted(set(seen))
    assert seen[-1] > 8
    assert (len(result.ids), result.finish_reason) == (seen[-1], "stop")


def test_what_is_known_at_the_deadline_is_the_answer(
    model: Transformer, context: tuple[int, ...], start: Start
) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    result = start(model, clock=clock).submit(ask(context, 80, min_new_tokens=80, deadline=30.0)).result()
    whole = start(model).submit(ask(context, 80, min_new_tokens=80)).result()

    assert result.finish_reason == "deadline"
    assert 0 < len(result.ids) < 80
    assert result.ids == whole.ids[: len(result.ids)]


def test_the_last_step_of_a_canvas_reveals_all_of_it(
    model: Transformer, context: tuple[int, ...], start: Start
) -> None:
    result = start(model).submit(ask(context[:45], 19, policy="fixed:1", max_steps=2, min_new_tokens=19)).result()

    assert len(result.ids) == 19
    assert MASK not in result.ids
    assert result.steps <= 2 * 3


def test_a_sampled_answer_repeats_with_its_seed(model: Transformer, context: tuple[int, ...], start: Start) -> None:
    def sample(seed: int) -> Result:
        sampling = SamplingParams(temperature=1.0, seed=seed)
        return start(model).submit(ask(context, sampling=sampling)).result()

    first = sample(1).ids

    assert sample(1).ids == first
    assert sample(2).ids != first


def test_flash_attention_takes_the_canvases_and_leaves_long_contexts(
    model: Transformer, context: tuple[int, ...]
) -> None:
    flash = FakeFlash()
    ids = [*context[:48], *[MASK] * BLOCK]

    plain = encode(model, context[:48])
    buffer = encode(model, context[:48], flash=flash)
    assert not flash.calls
    buffer.length = 40
    pieces = [
        Piece(context[40:48], buffer, 40, causal=True, read=[7]),
        Piece(ids[48:], buffer, 48, causal=False, read=range(BLOCK)),
    ]
    actual = forward(model, pieces, flash)

    assert {causal for causal, _, _ in flash.calls} == {False}
    torch.testing.assert_close(buffer.keys[:, :48], plain.keys[:, :48], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(actual, whole_logits(model, ids, BLOCK)[47:], atol=1e-5, rtol=1e-5)


def test_policies_that_need_the_causal_mode_are_refused(
    model: Transformer, context: tuple[int, ...], start: Start
) -> None:
    with pytest.raises(PolicyUnavailableError):
        start(model).submit(ask(context, policy="left_to_right"))


def test_pages_hold_whole_blocks(model: Transformer) -> None:
    with pytest.raises(InvalidRequestError, match="multiple of the block, 8"):
        PrefixCache(model.config, pages=4, page_size=12, dtype=torch.float32, device=torch.device("cpu"))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"block": 0}, "block is 0"),
        ({"block": 4}, "not verifiable"),
        ({"block": 4, "verifiable": False, "max_canvas": 6}, "max_canvas"),
        ({"block": 4, "verifiable": False, "max_canvas": 8, "sub_block": 3}, "sub_block is 3"),
    ],
)
def test_a_configuration_that_no_block_fits_is_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(CheckpointError, match=told):
        DiffusionConfig(MASK, END, **fields)


@pytest.mark.parametrize("policy", ["low_confidence:1.5", "low_confidence_dynamic:2", "low_confidence_dynamic:0.5/0"])
def test_a_wrong_parameter_of_a_block_policy_is_named(policy: str) -> None:
    with pytest.raises(InvalidRequestError, match="policy"):
        parse_policy(policy)


def test_canvases_of_several_blocks_answer_the_same_cached_or_not(
    model: Transformer, context: tuple[int, ...], start: Start
) -> None:
    longer = replace(model.config, diffusion=replace(model.config.diffusion, max_canvas=3 * BLOCK))
    several = Transformer(longer)
    several.load_state_dict(model.state_dict())
    several = several.requires_grad_(requires_grad=False).to(model.embed_tokens.weight.device)
    asked = [ask(context[:size], 17, canvas_lengths=(BLOCK, 2 * BLOCK), max_steps=64) for size in (45, 48)]

    engine = start(several)
    first, again = ([engine.submit(request).result() for request in asked] for _ in range(2))

    assert [result.ids for result in again] == [result.ids for result in first]
    assert all(result.cached_tokens >= 40 for result in again)
    for request, result in zip(asked, first, strict=True):
        assert (len(request.context) + result.canvas_length) % BLOCK == 0
        assert [length for length, _ in result.length_scores]
        assert MASK not in result.ids


Tokens = tuple[int, ...]


@settings(max_examples=30, deadline=None)
@given(contexts=st.lists(st.lists(st.integers(0, 1), max_size=30).map(tuple), min_size=2, max_size=6))
def test_what_the_cache_returns_was_computed_from_the_same_blocks(contexts: list[Tokens]) -> None:
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
