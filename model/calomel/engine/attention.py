"""One flat forward: the rows of all active requests side by side, without padding, and how they attend.

A forward concatenates pieces. A piece is a run of consecutive positions of one request. It attends to the keys and
values that its request already has and to itself: causally (context, verification), or in both directions (canvas).
Where the checkpoint reads its context in blocks, every piece begins at a block and attends to itself block by block.
Scaled-dot-product attention is the reference; on CUDA, flash-attn's varlen kernel is used where it is installed, except
for pieces of several blocks, whose mask it cannot express.
"""

from __future__ import annotations

import functools
import importlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.cache import KeyValueBuffer
from calomel.engine.config import ModelConfig
from calomel.engine.memory import REACH, MemoryConfig, in_threes
from calomel.engine.transformer import Transformer

# Numbers in a mask that is worth caching, such as a canvas' (64 are kept). A prefill chunk's mask takes megabytes.
_REMEMBERED_NUMBERS: Final = 2**18
# From this many causal rows on, making a full mask takes longer than doing without.
_MANY_ROWS: Final = 32
# Rows of a sliding window that attend at a time: with more, most rows do not see most of the keys.
_TILE: Final = 256


FlashVarlen = Callable[..., Tensor]
"""Attention over segments of different lengths: `flash_attn_varlen_func` of flash-attn 2."""


@functools.cache
def flash_varlen() -> FlashVarlen | None:
    """Flash-attn's function; None without a GPU, or without a package built for the installed PyTorch."""
    if not torch.cuda.is_available():
        return None
    try:
        found: FlashVarlen = importlib.import_module("flash_attn").flash_attn_varlen_func
    except (ImportError, AttributeError, OSError):  # OSError: its library misses a symbol
        return None
    return found


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive rows of one request in a forward, at positions context, context + 1, ...

    Attributes:
        ids: token ids [n].
        buffer: the request's keys and values; those of the rows are written after its first `context` tokens. A canvas'
            are scratch: they come after what the request has committed. None if nothing comes before the rows and
            nothing of them is kept.
        context: how many tokens of the request come before the first row; every row sees all of them.
        causal: a row sees the rows before it and itself; else all rows of the piece. With blocks, both see the rows
            up to the end of their own block.
        read: rows whose logits are wanted.
        behind: how many keys after the rows' own, still in the buffer, are visible to every row. Such a piece is part
            of one block.
        text: [n, REACH + 1], what the rows look up in a model's memory, see `text_of`; None to read `ids` as a text
            that starts there.
    """

    ids: Sequence[int]
    buffer: KeyValueBuffer | None
    context: int
    causal: bool
    read: Sequence[int] = ()
    behind: int = 0
    text: Tensor | None = None

    @property
    def stop(self) -> int:
        """Position after the last row."""
        return self.context + len(self.ids)


def forward(model: Transformer, pieces: Sequence[Piece], flash: FlashVarlen | None = None) -> Tensor:
    """The logits [R, V] float32 of the rows that `pieces` want read, in order.

    Every buffer has room for its piece, and then holds the keys and values of all rows from `context` on; `length` is
    left to the caller.
    """
    device = model.embed_tokens.weight.device
    ids = torch.tensor([token for piece in pieces for token in piece.ids], dtype=torch.int64, device=device)
    positions = torch.tensor([place for piece in pieces for place in range(piece.context, piece.stop)], device=device)
    attend = PieceAttention(model.config, pieces, flash)
    text = None
    if model.config.memory is not None:
        own = zip(pieces, ids.split([len(piece.ids) for piece in pieces]), strict=True)
        text = torch.cat(
            [in_threes(F.pad(row, (REACH, 0))) if piece.text is None else piece.text for piece, row in own]
        )
    read = [start + row for piece, start in zip(pieces, attend.starts, strict=False) for row in piece.read]
    wanted = torch.tensor(read, dtype=torch.int64, device=device) if len(read) < len(ids) else None
    return model.logits(model(ids, positions, attend, text, wanted))


def text_of(piece: Piece, tokens: Sequence[int], memory: MemoryConfig, device: torch.device) -> Tensor:
    """`Piece.text` of rows of a request whose final tokens are `tokens`."""
    if piece.causal:
        runs = memory.text([*tokens[: piece.context], *piece.ids], piece.context, piece.stop)
    else:  # known tokens in a canvas' first rows are final
        known = min(piece.context + 1, len(tokens))
        before = memory.before(tokens, known, REACH + known - piece.context)
        runs = [[*before, *piece.ids[known - piece.context :]]]
    return torch.cat([in_threes(torch.tensor(run, dtype=torch.int64, device=device)) for run in runs])


def attention_multiplications(config: ModelConfig, pieces: Sequence[Piece]) -> int:
    """How many multiplications the attention of `pieces` takes: two per number of each key that a row sees."""
    windows = Counter(config.window(layer) for layer in range(config.num_hidden_layers))
    width = 2 * config.num_attention_heads * config.head_dim
    seen = 0
    for piece in pieces:
        rows = len(piece.ids)
        keys = piece.stop + piece.behind
        seen += rows * sum(
            layers * (keys if window is None else min(keys, window + rows)) for window, layers in windows.items()
        )
    return seen * width


class PieceAttention:
    """The `Attend` of one forward.

    With a sliding window w, a row sees the keys whose position is less than w before its own; a canvas row also sees
    all rows of its canvas. In the last layer, rows whose output is not read have keys and values but no queries: for a
    chunk of a long context that saves half of the attention if one layer in three sees all of it.

    Attributes:
        starts: the first row of every piece, then the number of rows.
    """

    def __init__(self, config: ModelConfig, pieces: Sequence[Piece], flash: FlashVarlen | None = None) -> None:
        self._config = config
        self._pieces = pieces
        self._flash = flash
        self._masks: dict[tuple[int, int | None], Tensor | None] = {}
        self._lengths: dict[bool, tuple[Tensor, Tensor, int, int]] = {}
        self.starts = [0]
        for piece in pieces:
            self.starts.append(self.starts[-1] + len(piece.ids))

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [T, Hq, D], k and v [T, Hkv, D] to [T, Hq, D]."""
        window = self._config.window(layer)
        last = layer == self._config.num_hidden_layers - 1
        for index, piece in enumerate(self._pieces):
            if piece.causal:
                self._write(index, layer, k, v)
        if self._flash and all(self._plain(piece, window) for piece in self._pieces):
            return self._attend_flash(self._flash, layer, q, k, v, window)
        outs = []
        for index, piece in enumerate(self._pieces):
            if not piece.causal:  # one by one: candidate canvases of a request share scratch space
                self._write(index, layer, k, v)
            unread = last and not piece.read
            outs.append(q[self._rows(index)] if unread else self._attend_sdpa(index, layer, q, k, v, window))
        return outs[0] if len(outs) == 1 else torch.cat(outs)

    def _rows(self, index: int) -> slice:
        return slice(self.starts[index], self.starts[index + 1])

    def _write(self, index: int, layer: int, k: Tensor, v: Tensor) -> None:
        piece, rows = self._pieces[index], self._rows(index)
        if piece.buffer is not None:
            piece.buffer.keys[layer, piece.context : piece.stop] = k[rows]
            piece.buffer.values[layer, piece.context : piece.stop] = v[rows]

    def _plain(self, piece: Piece, window: int | None) -> bool:
        """Whether flash-attn can express what `piece` sees: no blocks, and no window that exempts a canvas."""
        block, rows = self._config.diffusion.block, len(piece.ids)
        if block > 1 or piece.behind:
            return rows <= block and not piece.behind
        return piece.causal or window is None or rows <= window

    def _attend_sdpa(self, index: int, layer: int, q: Tensor, k: Tensor, v: Tensor, window: int | None) -> Tensor:
        piece, own = self._pieces[index], self._rows(index)
        q = q[own]
        rows, heads, _ = q.shape
        first = 0 if window is None else max(0, piece.context - window + 1)
        if piece.buffer is None:
            keys, values = k[own], v[own]
        else:
            seen = slice(first, piece.stop + piece.behind)
            keys, values = piece.buffer.keys[layer, seen], piece.buffer.values[layer, seen]
        if piece.causal and self._config.diffusion.block == 1 and rows >= _MANY_ROWS and not q.is_cuda:
            return _attend_last(q, keys, values, window)
        if (index, window) not in self._masks:
            groups = heads // keys.shape[1]
            self._masks[index, window] = _mask_of(piece, first, window, groups, q, self._config.diffusion.block)
        mask = self._masks[index, window]
        if mask is None and layer == self._config.num_hidden_layers - 1 and len(piece.read) < rows:
            read = torch.tensor(piece.read, device=q.device)
            return torch.empty_like(q).index_copy_(0, read, _attend_folded(q[read], keys, values))
        return _attend_folded(q, keys, values, mask)

    def _attend_flash(
        self, flash: FlashVarlen, layer: int, q: Tensor, k: Tensor, v: Tensor, window: int | None
    ) -> Tensor:
        out = torch.empty_like(q)
        for causal in (True, False):
            indices = [index for index, piece in enumerate(self._pieces) if piece.causal == causal]
            if not indices:
                continue
            keys, values = self._flat_keys(indices, layer, k, v)
            if causal not in self._lengths:
                self._lengths[causal] = _cumulative([self._pieces[index] for index in indices], q.device)
            ordered = causal and self._config.diffusion.block == 1
            result = flash(
                torch.cat([q[self._rows(index)] for index in indices]),
                keys,
                values,
                *self._lengths[causal],
                causal=ordered,
                window_size=(-1 if window is None else window - 1, 0 if ordered else -1),
            )
            parts = torch.split(result, [len(self._pieces[index].ids) for index in indices])
            for index, part in zip(indices, parts, strict=True):
                out[self._rows(index)] = part
        return out

    def _flat_keys(self, indices: Sequence[int], layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """What the pieces see, concatenated: keys, values [S, Hkv, D]; a single piece's are not copied."""
        piece = self._pieces[indices[0]]
        if len(indices) == 1 and piece.buffer is not None:
            self._write(indices[0], layer, k, v)
            return piece.buffer.keys[layer, : piece.stop], piece.buffer.values[layer, : piece.stop]
        keys, values = [], []
        for index in indices:
            piece, rows = self._pieces[index], self._rows(index)
            if piece.buffer is not None:
                keys.append(piece.buffer.keys[layer, : piece.context])
                values.append(piece.buffer.values[layer, : piece.context])
                if piece.context == 0:  # the rows of a whole window are kept for its blocks
                    self._write(index, layer, k, v)
            keys.append(k[rows])
            values.append(v[rows])
        return torch.cat(keys), torch.cat(values)


def _attend_folded(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attention of q [T, Hq, D] over keys and values [S, Hkv, D]: [T, Hq, D].

    The query heads of a group become rows of their key head, so that no key is repeated.
    """
    rows, heads, width = q.shape
    groups = heads // keys.shape[1]
    folded = q.view(rows, -1, groups, width).permute(1, 2, 0, 3).reshape(1, -1, groups * rows, width)
    out = F.scaled_dot_product_attention(folded, keys.transpose(0, 1)[None], values.transpose(0, 1)[None], mask)
    return out.view(-1, groups, rows, width).permute(2, 0, 1, 3).reshape(rows, heads, width)


def _attend_last(q: Tensor, keys: Tensor, values: Tensor, window: int | None) -> Tensor:
    """Causal attention of the last rows q [T, Hq, D] of keys and values [S, Hkv, D]: [T, Hq, D].

    From the last row backwards each row sees one key less, so their masks are one row, each shifted by one: it is read
    with a stride of one instead of storing T * S numbers.
    """
    rows, heads, width = q.shape
    count = len(keys)
    if window is not None and rows > _TILE:
        before = count - rows
        parts = []
        for start in range(0, rows, _TILE):
            stop = min(start + _TILE, rows)
            seen = slice(max(0, before + start - window + 1), before + stop)
            parts.append(_attend_last(q[start:stop], keys[seen], values[seen], window))
        return torch.cat(parts)
    line = q.new_full((count + rows - 1,), -torch.inf)
    line[0 if window is None else max(0, count - window) : count] = 0.0
    groups = heads // keys.shape[1]
    backwards = q.flip(0).view(rows, -1, groups, width).permute(2, 1, 0, 3)  # [groups, Hkv, T, D]
    keys, values = (each.transpose(0, 1).expand(groups, -1, -1, -1) for each in (keys, values))
    out = F.scaled_dot_product_attention(backwards, keys, values, line.as_strided((rows, count), (1, 1)))
    return out.permute(2, 1, 0, 3).reshape(rows, heads, width).flip(0)


def _mask_of(piece: Piece, first: int, window: int | None, groups: int, q: Tensor, block: int) -> Tensor | None:
    """What to add to the scores [groups * rows, S] of `piece` over keys from position `first`; None for nothing."""
    rows = len(piece.ids)
    windowed = window is not None and piece.stop > window
    open_rows = rows <= block if block > 1 else not piece.causal
    # For a single row `first` has cut the keys to the window already.
    if rows == 1 or (open_rows and not windowed):
        return None
    small = groups * rows * (piece.stop - first) <= _REMEMBERED_NUMBERS
    make = _remembered_mask if windowed and small else _mask
    reach = block if block > 1 else 1 if piece.causal else rows
    return make(rows, piece.context - first, window if windowed else None, reach, groups, q.dtype, q.device)


def _mask(
    rows: int,
    past: int,
    window: int | None,
    reach: int,
    groups: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """The mask of `rows` rows after `past` keys: it depends on these lengths alone, not on positions.

    The rows see each other in blocks of `reach`, counted from the first: 1 is causal, `rows` in both directions.
    """
    query = torch.arange(past, past + rows, device=device)[:, None]
    key = torch.arange(past + rows, device=device)
    if reach == 1:
        visible = query >= key
    elif reach < rows:
        visible = (query - past) // reach >= (key - past) // reach
    else:
        visible = torch.ones(1, 1, dtype=torch.bool, device=device)
    if window is not None:
        near = query - key < window
        visible = visible & (near if reach == 1 else near | (key >= past))
    mask = torch.zeros(visible.shape, dtype=dtype, device=device).masked_fill(~visible, -torch.inf)
    return mask.repeat(groups, 1)


# After a context that fills the window, all canvases of one length share one mask, whatever the request.
_remembered_mask = functools.lru_cache(maxsize=64)(_mask)


def _cumulative(pieces: Sequence[Piece], device: torch.device) -> tuple[Tensor, Tensor, int, int]:
    """flash-attn's cu_seqlens_q, cu_seqlens_k [pieces + 1] int32, max_seqlen_q and max_seqlen_k."""
    rows = [len(piece.ids) for piece in pieces]
    keys = [piece.stop for piece in pieces]
    ends = [
        torch.tensor([0, *sizes], dtype=torch.int32, device=device).cumsum(0, dtype=torch.int32)
        for sizes in (rows, keys)
    ]
    return ends[0], ends[1], max(rows), max(keys)
