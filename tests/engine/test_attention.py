from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.conftest import CONFIG, Context, Naive, random
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from calomel.engine import ModelConfig, Transformer
from calomel.engine.attention import Piece
from calomel.engine.pages import Pages, PageTable
from calomel.engine.step import Step
from calomel.families.loading import load_checkpoint


def room(model: Transformer, tokens: int, *, size: int = 16, tables: int = 1) -> list[PageTable]:
    """Tables with room for `tokens` each, in pages of one pool that neither lie side by side nor in order."""
    weight, each = model.embed_tokens.weight, -(-tokens // size)
    pool = Pages(model.config, pages=tables * each, size=size, dtype=weight.dtype, device=weight.device)
    return [PageTable(pool, list(range(pool.count))[number::tables][::-1]) for number in range(tables)]


def forward(model: Transformer, pieces: Sequence[Piece]) -> Tensor:
    """The logits of the rows that are read."""
    step = Step(model, pieces[0].table.pool, ())
    with torch.inference_mode():
        step(pieces)
        return model.logits(step.hidden[: sum(len(piece.read) for piece in pieces)])


def whole(model: Transformer, ids: Sequence[int], *, causal: bool = True, read: Sequence[int] | None = None) -> Tensor:
    """The logits of a text that is read at once."""
    (table,) = room(model, len(ids))
    return forward(model, [Piece(ids, table, 0, causal=causal, read=range(len(ids)) if read is None else read)])


def encode(model: Transformer, tokens: Sequence[int], chunk: int = 1000, table: PageTable | None = None) -> PageTable:
    """The keys and values of `tokens`, with room for 140 more if there is no `table` yet."""
    table = table or room(model, len(tokens) + 140)[0]
    for first in range(0, len(tokens), chunk):
        part = tokens[first : first + chunk]
        forward(model, [Piece(part, table, first, causal=True)])
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


def test_rows_behind_a_context_too_long_for_a_mask_equal_the_whole_forward(model: Transformer, naive: Naive) -> None:
    tokens = torch.randint(0, 90, (2400,), generator=torch.Generator().manual_seed(2)).tolist()
    table = encode(model, tokens[:1300], table=room(model, 2400)[0])

    actual = forward(model, [Piece(tokens[1300:], table, 1300, causal=True, read=range(1100))])

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
        if func is torch.ops.aten.index_copy_.default:
            self.written += args[3].numel()
        return out


def test_a_step_copies_nothing_of_the_contexts_before_it(model: Transformer) -> None:
    config, length = model.config, 900
    contexts = [encode(model, tokens) for tokens in torch.randint(0, 90, (3, length)).tolist()]
    with Counting() as counts:  # type: ignore[no-untyped-call]
        forward(model, [canvas(context, [95]) for context in contexts])

    assert counts.largest < length
    assert counts.written == 3 * 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim


def test_rows_see_nothing_of_pages_that_others_have_left(model: Transformer, context: Context, naive: Naive) -> None:
    table = room(model, len(context) + 140)[0]
    pool = table.pool
    for held in (*pool.keys, *pool.values):
        held.fill_(torch.nan)
    pool.free = list(range(pool.count))
    table.pages = pool.take(pool.count, -2)

    actual = forward(model, [canvas(encode(model, context, table=table), [95] * 3)])

    torch.testing.assert_close(actual, naive(model, context, [95] * 3)[len(context) :], atol=1e-5, rtol=1e-5)


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
