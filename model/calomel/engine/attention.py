"""One flat forward: the rows of all active requests side by side, without padding, and how they attend.

A forward concatenates pieces. A piece is a run of consecutive positions of one request. It attends to the keys and
values that its request already has and to itself: causally (context, verification), or in both directions (canvas).
Where the checkpoint reads its context in blocks, every piece begins at a block and attends to itself block by block.
Keys are read where they are: by three matrix operations a piece and layer, or on CUDA by flash-attn where it is
installed, except for pieces of several blocks, whose mask it cannot express.
"""

from __future__ import annotations

import functools
import importlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.cache import KeyValueBuffer
from calomel.engine.config import ModelConfig
from calomel.engine.memory import REACH, MemoryConfig, in_threes
from calomel.engine.transformer import Transformer

# Rows that attend at a time: their scores stay in the processor's cache.
_TILE: Final = 64


Flash = Callable[..., Tensor]
"""Attention over cached keys: `flash_attn_with_kvcache` of flash-attn 2."""


@functools.cache
def flash_attention() -> Flash | None:
    """Flash-attn's function; None without a GPU, or without a package built for the installed PyTorch."""
    if not torch.cuda.is_available():
        return None
    try:
        found: Flash = importlib.import_module("flash_attn").flash_attn_with_kvcache
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


def forward(model: Transformer, pieces: Sequence[Piece], flash: Flash | None = None) -> Tensor:
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

    def __init__(self, config: ModelConfig, pieces: Sequence[Piece], flash: Flash | None = None) -> None:
        self._config = config
        self._pieces = pieces
        self._flash = flash
        self._tiles: dict[tuple[int, int | None], list[Tile]] = {}
        self.starts = [0]
        for piece in pieces:
            self.starts.append(self.starts[-1] + len(piece.ids))

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [T, Hq, D], k and v [T, Hkv, D] to [T, Hq, D]."""
        window = self._config.window(layer)
        last = layer == self._config.num_hidden_layers - 1
        outs = []
        for index, piece in enumerate(self._pieces):
            own = slice(self.starts[index], self.starts[index + 1])
            if piece.buffer is None:
                keys, values = k[own].transpose(0, 1), v[own].transpose(0, 1)
            else:
                keys, values = piece.buffer.keys[layer], piece.buffer.values[layer]
                keys[:, piece.context : piece.stop] = k[own].transpose(0, 1)
                values[:, piece.context : piece.stop] = v[own].transpose(0, 1)
            if last and not piece.read:
                outs.append(q[own])
            elif self._flash and self._plain(piece, window):
                outs.append(self._attend_flash(self._flash, piece, q[own], keys, values, window))
            else:
                outs.append(self._attend(index, q[own], keys, values, window, last=last))
        return outs[0] if len(outs) == 1 else torch.cat(outs)

    def _plain(self, piece: Piece, window: int | None) -> bool:
        """Whether flash-attn can express what `piece` sees: no blocks, and no window that exempts a canvas."""
        block, rows = self._config.diffusion.block, len(piece.ids)
        if block > 1 or piece.behind:
            return rows <= block and not piece.behind
        return piece.causal or window is None or rows <= window

    def _attend_flash(
        self, flash: Flash, piece: Piece, q: Tensor, keys: Tensor, values: Tensor, window: int | None
    ) -> Tensor:
        ordered = piece.causal and self._config.diffusion.block == 1
        reach = (-1 if window is None else window - 1, 0 if ordered else -1)
        keys, values = (each.transpose(0, 1)[None] for each in (keys, values))
        return flash(q[None], keys, values, cache_seqlens=piece.stop, causal=ordered, window_size=reach)[0]

    def _attend(self, index: int, q: Tensor, keys: Tensor, values: Tensor, window: int | None, *, last: bool) -> Tensor:
        piece = self._pieces[index]
        if (index, window) not in self._tiles:
            self._tiles[index, window] = list(_tiles(piece, window, self._config.diffusion.block, q.device))
        tiles = self._tiles[index, window]
        alike = all(tile.keys == tiles[0].keys and not tile.hidden for tile in tiles)
        if last and len(piece.read) < len(q) and alike:
            read = torch.tensor(piece.read, device=q.device)
            return torch.empty_like(q).index_copy_(0, read, attend(q[read], keys, values, tiles[0]))
        parts = [attend(q[tile.rows], keys, values, tile) for tile in tiles]
        return parts[0] if len(parts) == 1 else torch.cat(parts)


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows that attend together.

    Attributes:
        rows: of the piece.
        keys: all that any of them sees, from the first key of the buffer, or of the piece if it has none.
        hidden: pairs of a range of those keys, counted from the first of them, and which of them, [rows, keys] bool,
            a row does not see. They are few: those around the edge of a window, and those of the rows themselves.
    """

    rows: slice
    keys: slice
    hidden: tuple[tuple[slice, Tensor], ...]


def _tiles(piece: Piece, window: int | None, block: int, device: torch.device) -> Iterator[Tile]:
    """The rows of `piece` in tiles."""
    size, base = len(piece.ids), piece.context
    # The rows see each other in runs of this many, counted from the first: 1 is causal.
    run = block if 1 < block < size else size if block > 1 or not piece.causal else 1
    step = _TILE if run == size else max(_TILE // run, 1) * run
    for start in range(0, size, step):
        stop = min(start + step, size)
        first = 0 if window is None else max(0, base + start - window + 1)
        # The keys that the first row of the tile sees and its last one does not.
        beyond = 0 if window is None else max(0, base + stop - window - first)
        if run > 1:  # a window hides nothing of the piece
            first = min(first, base)
            beyond = min(beyond, base - first)
        hidden = []
        row = torch.arange(start, stop, device=device)[:, None]
        if beyond and window is not None:
            key = torch.arange(first, first + beyond, device=device)
            hidden.append((slice(0, beyond), key <= base + row - window))
        if run < stop - start:
            key = torch.arange(start, stop, device=device)
            hidden.append((slice(base + start - first, base + stop - first), key // run > row // run))
        end = piece.stop + piece.behind if run == size else base + stop
        yield Tile(slice(start, stop), slice(first, end), tuple(hidden))


def attend(q: Tensor, keys: Tensor, values: Tensor, tile: Tile) -> Tensor:
    """Attention of the rows q [T, Hq, D] of `tile` over keys and values [Hkv, S, D]: [T, Hq, D].

    The query heads of a group become rows of their key head, so that no key is repeated. Products of two matrices read
    keys and values where they are (a batched one would copy them), and with bfloat16 a CPU needs half of the time of
    `scaled_dot_product_attention`.
    """
    rows, heads, width = q.shape
    groups = heads // len(keys)
    folded = q.view(rows, -1, groups, width).permute(1, 2, 0, 3).reshape(-1, groups * rows, width)
    out, nothing = torch.empty_like(folded), q.new_empty(1)
    for own, key, value, result in zip(folded, keys[:, tile.keys], values[:, tile.keys], out, strict=True):
        scores = torch.addmm(nothing, own, key.t(), beta=0, alpha=width**-0.5)  # [groups * T, S]
        for columns, unseen in tile.hidden:
            scores.view(groups, rows, -1)[..., columns].masked_fill_(unseen, -torch.inf)
        torch.mm(scores.softmax(dim=-1), value, out=result)
    return out.view(-1, groups, rows, width).permute(2, 0, 1, 3).reshape(rows, heads, width)
