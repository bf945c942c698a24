from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.engine.conftest import CONFIG, Context, Naive, random
from torch import Tensor
from torch.nn.attention.varlen import varlen_attn as real
from torch.utils._python_dispatch import TorchDispatchMode

from calomel.engine import ModelConfig, Transformer
from calomel.engine.attention import HEAD_BY_HEAD, Piece, flash_attention, forward, torch_flash, works
from calomel.engine.pages import Pages, PageTable
from calomel.families.loading import load_checkpoint


def room(model: Transformer, tokens: int, *, size: int = 16, tables: int = 1) -> list[PageTable]:
    """Tables with room for `tokens` each, in pages of one pool that neither lie side by side nor in order."""
    weight, each = model.embed_tokens.weight, -(-tokens // size)
    pool = Pages(model.config, pages=tables * each, size=size, dtype=weight.dtype, device=weight.device)
    return [PageTable(pool, list(range(pool.count))[number::tables][::-1]) for number in range(tables)]


def encode(
    model: Transformer, tokens: Sequence[int], chunk: int = 1000, flash: Any = None, table: PageTable | None = None
) -> PageTable:
    """The keys and values of `tokens`, with room for 140 more if there is no `table` yet."""
    table = table or room(model, len(tokens) + 140)[0]
    for first in range(0, len(tokens), chunk):
        part = tokens[first : first + chunk]
        forward(model, [Piece(part, table, first, causal=True)], flash)
        table.length += len(part)
    return table


def canvas(table: PageTable, ids: Sequence[int]) -> Piece:
    return Piece(ids, table, table.length, causal=False, read=range(len(ids)))


@pytest.mark.parametrize(("cached", "size"), [(61, 3), (61, 12), (61, 40), (50, 4), (20, 0)])
def test_rows_behind_cached_chunks_equal_the_whole_forward(
    model: Transformer, context: Context, naive: Naive, cached: int, size: int
) -> None:
    ids = [95] * (size - 1) + [17] * bool(size)
    table = encode(model, context[:cached], chunk=7)
    pieces = [Piece(context[cached:], table, cached, causal=True, read=range(61 - cached))] if cached < 61 else []
    table.length = 61

    actual = forward(model, [*pieces, canvas(table, ids)] if size else pieces)

    torch.testing.assert_close(actual, naive(model, context, ids)[cached:], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("at_once", [False, True])
def test_rows_behind_a_context_too_long_for_a_mask_equal_the_whole_forward(
    model: Transformer, naive: Naive, monkeypatch: pytest.MonkeyPatch, *, at_once: bool
) -> None:
    if at_once:  # as on a GPU
        monkeypatch.setattr("calomel.engine.attention.HEAD_BY_HEAD", ())
    tokens = torch.randint(0, 90, (2400,), generator=torch.Generator().manual_seed(2)).tolist()
    table = encode(model, tokens[:1300], table=room(model, 2400)[0])

    actual = forward(model, [Piece(tokens[1300:], table, 1300, causal=True, read=range(1100))])

    torch.testing.assert_close(actual, naive(model, tokens, [])[1300:], atol=1e-4, rtol=1e-4)


def test_canvases_of_several_lengths_at_one_place_do_not_see_each_other(
    model: Transformer, context: Context, naive: Naive
) -> None:
    table, lengths = encode(model, context), (9, 3, 30)

    actual = forward(model, [canvas(table, [95] * length) for length in lengths])

    whole = [naive(model, context, [95] * length)[len(context) :] for length in lengths]
    torch.testing.assert_close(actual, torch.cat(whole), atol=1e-5, rtol=1e-5)


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
        if func is torch.ops.aten.index_copy_.default:
            self.written += args[3].numel()
        return out


def test_a_step_copies_nothing_of_the_contexts_before_it(model: Transformer) -> None:
    config, length = model.config, 900
    contexts = [encode(model, tokens) for tokens in torch.randint(0, 90, (3, length)).tolist()]
    with Counting() as counts:  # type: ignore[no-untyped-call]
        forward(model, [canvas(context, [95]) for context in contexts])

    keys = -(-(length + 1) // 16) * 16  # of whole pages
    at_once = 1 if model.embed_tokens.weight.device.type in HEAD_BY_HEAD else config.num_key_value_heads
    scores = at_once * config.num_attention_heads // config.num_key_value_heads * keys
    own = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim
    assert counts.largest == scores < length * config.head_dim
    assert counts.written == 3 * own


class FakeFlash:
    """`flash_attn_varlen_func`, written out; causal masks and windows are aligned at the end of the keys."""

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
        block_table: Tensor | None,
    ) -> Tensor:
        rows, seen = cu_seqlens_q.diff().tolist(), cu_seqlens_k.diff().tolist()
        assert all(part.stride(-1) == 1 for part in (q, k, v))
        assert {each.dtype for each in (cu_seqlens_q, cu_seqlens_k)} == {torch.int32}
        assert (sum(rows), max(rows), max(seen)) == (len(q), max_seqlen_q, max_seqlen_k)
        self.calls.append((causal, window_size, rows))
        outs = []
        for number, own in enumerate(q.split(rows)):
            keys, values = (self._of(part, number, cu_seqlens_k, block_table) for part in (k, v))
            outs.append(self._attend(own, keys, values, causal=causal, window=window_size))
        return torch.cat(outs)

    def _of(self, held: Tensor, number: int, ends: Tensor, pages: Tensor | None) -> Tensor:
        """The keys of one run of rows [S, Hkv, D]."""
        if pages is None:
            return held[ends[number] : ends[number + 1]]
        assert pages.dtype == torch.int32
        assert held.shape[1] % 256 == 0
        return held[pages[number].long()].flatten(0, 1)[: ends[number + 1] - ends[number]]

    def _attend(self, q: Tensor, keys: Tensor, values: Tensor, *, causal: bool, window: tuple[int, int]) -> Tensor:
        keys, values = (part.repeat_interleave(q.shape[1] // part.shape[1], 1) for part in (keys, values))
        place_k = torch.arange(len(keys), device=q.device)[None]
        place_q = place_k.T[-len(q) :]
        left, right = window
        seen = torch.ones(len(q), len(keys), dtype=torch.bool, device=q.device)
        if causal or right >= 0:
            seen &= place_k <= place_q + max(right, 0)
        if left >= 0:
            seen &= place_k >= place_q - left
        scores = torch.einsum("qhd,khd->hqk", q, keys) / q.shape[-1] ** 0.5
        return torch.einsum("hqk,khd->qhd", scores.masked_fill(~seen, -torch.inf).softmax(-1), values)


@pytest.mark.parametrize("size", [5, 20])  # within and beyond the sliding window
def test_the_flash_backend_equals_the_reference(model: Transformer, context: Context, size: int) -> None:
    if model.embed_tokens.weight.is_cuda:
        pytest.skip("the fake of flash-attn is for the CPU")
    flash, outs = FakeFlash(), list[Tensor]()
    for backend in (None, flash):
        tables = room(model, 1024, size=256, tables=2)
        first, second = (
            encode(model, context * 9, 60, backend, tables[0]),
            encode(model, context, 30, backend, tables[1]),
        )
        typed = Piece(context[:10], second, 61, causal=True, read=range(10))
        pieces = [canvas(first, [95] * size), typed, Piece([95] * 4, second, 71, causal=False, read=range(4))]
        flash.calls.clear()
        outs.append(forward(model, pieces, backend))

    torch.testing.assert_close(outs[1], outs[0], atol=1e-5, rtol=1e-5)
    # One call a layer for all canvases, whoever's they are, and one for what is read causally.
    full = [(False, (-1, -1), [size, 4]), (True, (-1, 0), [10])]
    sliding = [(False, (11, -1), [size, 4] if size <= 12 else [4]), (True, (11, 0), [10])]
    assert sorted(flash.calls) == sorted(full + 2 * sliding)


@pytest.mark.gpu
def test_flash_attention_equals_the_reference_on_cuda(config: ModelConfig) -> None:
    flash = flash_attention(torch.device("cuda"))
    assert flash is not None
    torch.manual_seed(0)
    model = Transformer(replace(config, head_dim=64)).requires_grad_(requires_grad=False).to("cuda", torch.bfloat16)
    tokens = torch.randint(0, 90, (300,)).tolist()
    outs = [
        forward(model, [canvas(encode(model, tokens, 1000, each, room(model, 512, size=256)[0]), [95] * 8)], each)
        for each in (None, flash)
    ]

    torch.testing.assert_close(outs[1], outs[0], atol=3e-2, rtol=3e-2)


def test_flash_attention_that_is_wrong_here_is_named_and_not_used(caplog: pytest.LogCaptureFixture) -> None:
    flash, cpu = FakeFlash(), torch.device("cpu")

    def forgets_the_window(*args: Any, **how: Any) -> Tensor:
        return flash(*args, **{**how, "window_size": (-1, 0)})

    def lacks_a_kernel(*_: Any, **__: Any) -> Tensor:
        raise RuntimeError("no kernel image")

    assert works(flash, cpu)
    assert not caplog.messages
    assert not works(forgets_the_window, cpu)
    assert not works(lacks_a_kernel, cpu)
    assert ["is not used" in each for each in caplog.messages] == [True, True]
    assert "no kernel image" in caplog.messages[1]


def test_pytorchs_flash_attention_is_asked_as_it_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    flash = FakeFlash()

    def varlen_attn(
        *args: Any, window_size: tuple[int, int], enable_gqa: bool, seqused_k: Tensor | None, block_table: Tensor | None
    ) -> Tensor:
        assert enable_gqa
        assert (seqused_k is None) == (block_table is None)
        assert seqused_k is None or seqused_k.tolist() == args[4].diff().tolist()
        return flash(*args, causal=window_size == (-1, 0), window_size=window_size, block_table=block_table)

    assert inspect.signature(varlen_attn).parameters.keys() - {"args"} <= inspect.signature(real).parameters.keys()
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", varlen_attn)

    assert works(torch_flash, torch.device("cpu"))
    assert {(causal, window) for causal, window, _ in flash.calls} == {(False, (-1, -1)), (False, (9, 0))}


@pytest.mark.parametrize(
    ("device", "capability", "package", "used"),
    [
        ("cuda", (9, 0), True, "flash_attn"),
        ("cuda", (9, 0), False, "torch"),
        ("cuda", (7, 5), True, None),
        ("cpu", (9, 0), True, None),
    ],
)
def test_flash_attn_is_used_where_it_is_installed_and_pytorchs_elsewhere_on_gpus_that_run_them(
    monkeypatch: pytest.MonkeyPatch, device: str, capability: tuple[int, int], *, package: bool, used: str | None
) -> None:
    flash = FakeFlash()
    there = SimpleNamespace(flash_attn_varlen_func=flash) if package else None
    monkeypatch.setitem(sys.modules, "flash_attn", there)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr("calomel.engine.attention.works", lambda *_: True)

    found = flash_attention.__wrapped__(torch.device(device))

    assert found is {"flash_attn": flash, "torch": torch_flash, None: None}[used]


# The decoder against the reference implementation of its architecture.
WHOLE = replace(CONFIG, sliding_window=None, layer_types=(), rope_theta=10_000.0)


@pytest.mark.parametrize("config", [WHOLE, replace(CONFIG, tie_word_embeddings=False)], ids=["tied", "with a window"])
def test_logits_equal_those_of_transformers_qwen3(tmp_path: Path, config: ModelConfig) -> None:
    transformers = pytest.importorskip("transformers")
    raw = {name: value for name, value in config.to_dict().items() if name != "diffusion"}
    windows = config.sliding_window is not None
    reference = transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(**raw, use_sliding_window=windows, attn_implementation="eager")
    )
    for parameter in random(reference, scale=0.2).parameters():
        if parameter.dim() == 1:
            parameter.data += torch.randn_like(parameter) * 0.2
    reference.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()), encoding="utf-8")
    tokens = torch.randint(0, 95, (40,)).tolist()

    model = load_checkpoint(tmp_path)
    buffer = encode(model, [])
    actual = forward(model, [Piece(tokens, buffer, 0, causal=True, read=range(40))])

    torch.testing.assert_close(actual, reference(torch.tensor([tokens])).logits[0], atol=1e-4, rtol=1e-4)
