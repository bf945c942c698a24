from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.engine.conftest import CONFIG, Context, Naive
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from calomel.engine import ModelConfig, Transformer
from calomel.engine.attention import Piece, flash_attention, forward
from calomel.engine.cache import KeyValueBuffer


@pytest.fixture(params=[False, True], ids=["plain", "shifted"])
def config(request: pytest.FixtureRequest) -> ModelConfig:
    """Without a memory: these forwards say nothing of the request that they belong to."""
    return replace(CONFIG, diffusion=replace(CONFIG.diffusion, logit_shift=request.param))


def encode(model: Transformer, tokens: Sequence[int], chunk: int = 1000, flash: Any = None) -> KeyValueBuffer:
    weight = model.embed_tokens.weight
    buffer = KeyValueBuffer(model.config, len(tokens) + 140, dtype=weight.dtype, device=weight.device)
    for first in range(0, len(tokens), chunk):
        part = tokens[first : first + chunk]
        forward(model, [Piece(part, buffer, first, causal=True)], flash)
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


class Counting(TorchDispatchMode):
    """Counts numbers: of the largest tensor that an operation made, and of all that were written into others."""

    largest = written = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = {each.untyped_storage().data_ptr() for each in args if isinstance(each, Tensor)}
        if isinstance(out, Tensor) and out.untyped_storage().data_ptr() not in given:
            self.largest = max(self.largest, out.numel())
        if func is torch.ops.aten.copy_.default:
            self.written += out.numel()
        return out


def test_a_step_copies_nothing_of_the_contexts_before_it(model: Transformer) -> None:
    config, length = model.config, 900
    contexts = [encode(model, tokens) for tokens in torch.randint(0, 90, (3, length)).tolist()]
    with Counting() as counts:  # type: ignore[no-untyped-call]
        forward(model, [canvas(context, [95] * 2) for context in contexts])

    scores = config.num_attention_heads // config.num_key_value_heads * 2 * (length + 2)
    own = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim
    assert counts.largest == scores < length * config.head_dim
    assert counts.written == 3 * 2 * own


class FakeFlash:
    """`flash_attn_with_kvcache`, written out; causal masks and windows are aligned at the end of the keys."""

    def __init__(self) -> None:
        self.calls: list[tuple[bool, tuple[int, int], int]] = []

    def __call__(
        self,
        q: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
        *,
        cache_seqlens: int,
        causal: bool,
        window_size: tuple[int, int],
    ) -> Tensor:
        batch, rows, heads, width = q.shape
        assert batch == 1
        assert k_cache.shape == v_cache.shape == (batch, k_cache.shape[1], k_cache.shape[2], width)
        assert all(part.stride(-1) == 1 for part in (q, k_cache, v_cache))
        assert rows <= cache_seqlens <= k_cache.shape[1]
        self.calls.append((causal, window_size, rows))
        keys, values = (
            part[0, :cache_seqlens].repeat_interleave(heads // part.shape[2], 1) for part in (k_cache, v_cache)
        )
        place_q = torch.arange(rows)[:, None] + len(keys) - rows
        place_k = torch.arange(len(keys))[None]
        left, right = window_size
        seen = torch.ones(rows, len(keys), dtype=torch.bool)
        if causal or right >= 0:
            seen &= place_k <= place_q + max(right, 0)
        if left >= 0:
            seen &= place_k >= place_q - left
        scores = torch.einsum("qhd,khd->hqk", q[0], keys) / width**0.5
        return torch.einsum("hqk,khd->qhd", scores.masked_fill(~seen, -torch.inf).softmax(-1), values)[None]


@pytest.mark.parametrize("size", [5, 20])  # within and beyond the sliding window
def test_the_flash_backend_equals_the_reference(model: Transformer, context: Context, size: int) -> None:
    if model.embed_tokens.weight.is_cuda:
        pytest.skip("the fake of flash-attn is for the CPU")
    flash = FakeFlash()
    outs = []
    for backend in (None, flash):
        first, second = encode(model, context, flash=backend), encode(model, context[:30], flash=backend)
        typed = Piece(context[30:40], second, 30, causal=True, read=range(10))
        pieces = [canvas(first, [95] * size), typed, Piece([95] * 4, second, 40, causal=False, read=range(4))]
        outs.append(torch.cat([forward(model, each, backend) for each in (pieces, [canvas(first, [95] * 6)])]))

    torch.testing.assert_close(outs[1], outs[0], atol=1e-5, rtol=1e-5)
    assert (True, (-1, 0), 10) in flash.calls
    assert {(False, (-1, -1), size), (False, (-1, -1), 4)} <= set(flash.calls)
    assert ((False, (11, -1), size) in flash.calls) == (size <= 12)


@pytest.mark.gpu
def test_flash_attn_equals_the_reference_on_cuda(config: ModelConfig) -> None:
    flash = flash_attention()
    if flash is None:
        pytest.skip("needs CUDA and flash-attn")
    torch.manual_seed(0)
    model = Transformer(config).requires_grad_(requires_grad=False).to("cuda", torch.bfloat16)
    tokens = torch.randint(0, 90, (300,)).tolist()
    outs = [forward(model, [canvas(encode(model, tokens, flash=each), [95] * 8)], each) for each in (None, flash)]

    torch.testing.assert_close(outs[1], outs[0], atol=3e-2, rtol=3e-2)


@pytest.mark.parametrize(("cuda", "package"), [(True, True), (True, False), (False, True)])
def test_flash_attn_is_used_on_a_gpu_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, *, cuda: bool, package: bool
) -> None:
    flash = FakeFlash()
    there = SimpleNamespace(flash_attn_with_kvcache=flash) if package else None
    monkeypatch.setitem(sys.modules, "flash_attn", there)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)

    assert flash_attention.__wrapped__() is (flash if cuda and package else None)
