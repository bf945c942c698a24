from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.engine.conftest import CONFIG
from torch import Tensor

from calomel.engine import DiffusionConfig, ModelConfig, Transformer
from calomel.engine.attention import Piece, attention_multiplications, flash_varlen, forward
from calomel.engine.cache import KeyValueBuffer

Naive = Callable[[Transformer, list[int], list[int]], Tensor]


@pytest.fixture(params=[False, True], ids=["plain", "shifted"])
def config(request: pytest.FixtureRequest) -> ModelConfig:
    """Without a memory: these forwards say nothing of the request that they belong to."""
    return replace(CONFIG, diffusion=replace(CONFIG.diffusion, logit_shift=request.param))


def new_buffer(model: Transformer, capacity: int = 200) -> KeyValueBuffer:
    weight = model.embed_tokens.weight
    return KeyValueBuffer(model.config, capacity, dtype=weight.dtype, device=weight.device)


def encode(model: Transformer, tokens: list[int], chunk: int = 1000, flash: Any = None) -> KeyValueBuffer:
    buffer = new_buffer(model)
    for first in range(0, len(tokens), chunk):
        part = tokens[first : first + chunk]
        forward(model, [Piece(part, buffer, first, causal=True)], flash)
        buffer.length += len(part)
    return buffer


def canvas_logits(model: Transformer, buffer: KeyValueBuffer, canvas: list[int], flash: Any = None) -> Tensor:
    return forward(model, [Piece(canvas, buffer, buffer.length, causal=False, read=range(len(canvas)))], flash)


@pytest.mark.parametrize("size", [3, 12, 40])
def test_a_cached_canvas_step_equals_the_whole_forward(
    model: Transformer, context: tuple[int, ...], naive: Naive, size: int
) -> None:
    canvas = [95] * (size - 1) + [17]
    expected = naive(model, list(context), canvas)[len(context) :]

    actual = canvas_logits(model, encode(model, list(context)), canvas)

    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


def test_causal_rows_equal_the_whole_forward(model: Transformer, context: tuple[int, ...], naive: Naive) -> None:
    buffer = encode(model, list(context[:20]))

    actual = forward(model, [Piece(context[20:], buffer, 20, causal=True, read=range(41))])

    torch.testing.assert_close(actual, naive(model, list(context), [])[20:], atol=1e-5, rtol=1e-5)


def test_rows_behind_a_context_too_long_for_a_mask_equal_the_whole_forward(model: Transformer, naive: Naive) -> None:
    tokens = torch.randint(0, 90, (2400,), generator=torch.Generator().manual_seed(2)).tolist()
    buffer = new_buffer(model, 2400)
    forward(model, [Piece(tokens[:1300], buffer, 0, causal=True)])

    actual = forward(model, [Piece(tokens[1300:], buffer, 1300, causal=True, read=range(1100))])

    torch.testing.assert_close(actual, naive(model, tokens, [])[1300:], atol=1e-4, rtol=1e-4)


def test_chunked_prefill_equals_whole_prefill(model: Transformer, context: tuple[int, ...]) -> None:
    whole = encode(model, list(context))
    chunked = encode(model, list(context), chunk=7)

    torch.testing.assert_close(chunked.keys[:, :61], whole.keys[:, :61], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(chunked.values[:, :61], whole.values[:, :61], atol=1e-5, rtol=1e-5)


def test_a_later_canvas_token_affects_an_earlier_one(model: Transformer, context: tuple[int, ...]) -> None:
    buffer = encode(model, list(context))

    first = canvas_logits(model, buffer, [95, 95, 95, 10])[0]
    second = canvas_logits(model, buffer, [95, 95, 95, 11])[0]

    assert (first - second).abs().max() > 1e-3


def test_context_tokens_never_see_the_canvas(model: Transformer, context: tuple[int, ...]) -> None:
    buffer = encode(model, list(context[:-1]))
    alone = forward(model, [Piece(context[-1:], buffer, 60, causal=True, read=[0])])
    keys = buffer.keys[:, :61].clone()

    pieces = [
        Piece(context[-1:], buffer, 60, causal=True, read=[0]),
        Piece([95, 40, 95], buffer, 61, causal=False),
    ]
    beside = forward(model, pieces)

    torch.testing.assert_close(beside, alone, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(buffer.keys[:, :61], keys, atol=1e-5, rtol=1e-5)


def test_a_canvas_sees_causal_rows_of_the_same_forward(
    model: Transformer, context: tuple[int, ...], naive: Naive
) -> None:
    buffer = encode(model, list(context[:50]))
    canvas = [95, 12, 95, 95]

    pieces = [
        Piece(context[50:], buffer, 50, causal=True),
        Piece(canvas, buffer, 61, causal=False, read=range(4)),
    ]
    actual = forward(model, pieces)

    torch.testing.assert_close(actual, naive(model, list(context), canvas)[61:], atol=1e-5, rtol=1e-5)


def test_requests_of_one_forward_do_not_see_each_other(model: Transformer, context: tuple[int, ...]) -> None:
    first, second = encode(model, list(context)), encode(model, list(context[::-1]))
    canvases = [[95] * 5, [95] * 9, [95] * 14]

    together = forward(
        model,
        [
            Piece(canvases[0], first, 61, causal=False, read=range(5)),
            Piece(canvases[1], second, 61, causal=False, read=range(9)),
            Piece(canvases[2], first, 61, causal=False, read=range(14)),  # a second canvas on the same context
        ],
    )

    apart = [
        canvas_logits(model, buffer, canvas) for buffer, canvas in zip((first, second, first), canvases, strict=True)
    ]
    torch.testing.assert_close(together, torch.cat(apart), atol=1e-5, rtol=1e-5)


class FakeFlash:
    """flash-attn's varlen function, written out; causal masks and windows are aligned at the end of the keys."""

    def __init__(self) -> None:
        self.calls: list[tuple[bool, tuple[int, int], list[int]]] = []

    def __call__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        cu_seqlens_q: Tensor,
        cu_seqlens_k: Tensor,
        max_seqlen_q: int,
        max_seqlen_k: int,
        *,
        causal: bool,
        window_size: tuple[int, int],
    ) -> Tensor:
        assert q.dim() == k.dim() == v.dim() == 3
        assert cu_seqlens_q.dtype == cu_seqlens_k.dtype == torch.int32
        ends_q, ends_k = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
        assert (ends_q[-1], ends_k[-1]) == (len(q), len(k))
        sizes_q = [stop - begin for begin, stop in pairwise(ends_q)]
        sizes_k = [stop - begin for begin, stop in pairwise(ends_k)]
        assert (max_seqlen_q, max_seqlen_k) == (max(sizes_q), max(sizes_k))
        self.calls.append((causal, window_size, sizes_q))
        outs = []
        for queries, keys, values in zip(q.split(sizes_q), k.split(sizes_k), v.split(sizes_k), strict=True):
            groups = queries.shape[1] // keys.shape[1]
            keys, values = keys.repeat_interleave(groups, 1), values.repeat_interleave(groups, 1)  # noqa: PLW2901
            place_q = torch.arange(len(queries))[:, None] + len(keys) - len(queries)
            place_k = torch.arange(len(keys))[None]
            left, right = window_size
            seen = torch.ones(len(queries), len(keys), dtype=torch.bool)
            if causal or right >= 0:
                seen &= place_k <= place_q + max(right, 0)
            if left >= 0:
                seen &= place_k >= place_q - left
            scores = torch.einsum("qhd,khd->hqk", queries, keys) / queries.shape[-1] ** 0.5
            outs.append(torch.einsum("hqk,khd->qhd", scores.masked_fill(~seen, -torch.inf).softmax(-1), values))
        return torch.cat(outs)


@pytest.mark.parametrize("size", [5, 20])  # within and beyond the sliding window
def test_the_flash_backend_equals_the_reference(model: Transformer, context: tuple[int, ...], size: int) -> None:
    if model.embed_tokens.weight.is_cuda:
        pytest.skip("the fake of flash-attn is for the CPU")
    flash = FakeFlash()
    outs = []
    for backend in (None, flash):
        first, second = encode(model, list(context), flash=backend), encode(model, list(context[:30]), flash=backend)
        pieces = [
            Piece([95] * size, first, 61, causal=False, read=range(size)),
            Piece(context[30:40], second, 30, causal=True, read=range(10)),
            Piece([95] * 4, second, 40, causal=False, read=range(4)),
        ]
        outs.append(torch.cat([forward(model, pieces, backend), canvas_logits(model, first, [95] * 6, backend)]))

    torch.testing.assert_close(outs[1], outs[0], atol=1e-5, rtol=1e-5)
    assert (True, (-1, 0), [10]) in flash.calls
    assert (False, (-1, -1), [size, 4]) in flash.calls
    assert ((False, (11, -1), [size, 4]) in flash.calls) == (size <= 12)


@pytest.mark.gpu
def test_flash_attn_equals_the_reference_on_cuda(config: ModelConfig) -> None:
    flash = flash_varlen()
    if flash is None:
        pytest.skip("needs CUDA and flash-attn")
    torch.manual_seed(0)
    model = Transformer(config).requires_grad_(False).to("cuda", torch.bfloat16)
    tokens = torch.randint(0, 90, (300,)).tolist()
    outs = [canvas_logits(model, encode(model, tokens, flash=backend), [95] * 8, backend) for backend in (None, flash)]

    torch.testing.assert_close(outs[1], outs[0], atol=3e-2, rtol=3e-2)


@pytest.mark.parametrize(("cuda", "package"), [(True, True), (True, False), (False, True)])
def test_flash_attn_is_used_on_a_gpu_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, cuda: Any, package: Any
) -> None:
    flash, there = FakeFlash(), SimpleNamespace()
    there.flash_attn_varlen_func = flash
    monkeypatch.setitem(sys.modules, "flash_attn", there if package else None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    flash_varlen.cache_clear()

    assert flash_varlen() is (flash if cuda and package else None)

    flash_varlen.cache_clear()


def test_a_buffer_keeps_what_is_committed_when_it_grows(model: Transformer, context: tuple[int, ...]) -> None:
    buffer = encode(model, list(context))
    keys = buffer.keys[:, :61].clone()

    buffer.reserve(500)

    assert buffer.capacity >= 500
    assert torch.equal(buffer.keys[:, :61], keys)


def test_the_work_of_attention_is_what_rows_see() -> None:
    config = ModelConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        max_position_embeddings=64,
        diffusion=DiffusionConfig(mask_token_id=1, end_token_id=0),
        sliding_window=4,
        layer_types=("sliding_attention", "full_attention", "sliding_attention"),
    )
    buffer = KeyValueBuffer(config, 40, dtype=torch.float32, device=torch.device("cpu"))
    pieces = [Piece([5, 6], buffer, 20, causal=True), Piece([1] * 3, buffer, 0, causal=False)]

    # Two rows behind 20 tokens see 22 keys, or 6 in a window; three rows at the beginning 3 in every layer.
    assert attention_multiplications(config, pieces) == 2 * 2 * 8 * (2 * (22 + 2 * 6) + 3 * (3 + 2 * 3))
