"""How the rows of a forward attend: each over the keys of its own request, read where they lie in pages.

A forward concatenates pieces, without padding. A piece is a run of consecutive positions of one request. Every row sees
the keys of its request below a limit of its own: those up to itself (context, verification), up to the end of the piece
(canvas), or up to the end of its block. So one operation, `calomel::attend`, takes all pieces of a forward: a kernel of
Triton on CUDA (`calomel.engine.kernels`), elsewhere products of matrices, one for each piece, head and run of
neighbouring pages.
"""

from __future__ import annotations

import functools
import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.config import ModelConfig
from calomel.engine.pages import PageTable, runs_of
from calomel.storage.failures import cause

LOG: Final = logging.getLogger(__name__)
# Rows that attend at a time: their scores stay in a processor's cache. In the kernel, rows of a head of keys.
TILE: Final = 64
# The plans that are kept: of all layers and of the last one, with a window and without.
_PLANS: Final = 4
# Kinds of scratch that are kept: lengths come again from one step to the next.
_SCRATCHES: Final = 64
# The oldest compute capability that Triton's products of bfloat16 run on.
_AMPERE: Final = (8, 0)


@dataclass(slots=True)
class Piece:
    """Consecutive rows of one request in a forward, at positions context, context + 1, ...

    Attributes:
        ids: token ids [n].
        table: where the request's keys and values are; those of the rows are written after its first `context` tokens.
            A canvas' are scratch: they come after what the request has committed.
        context: how many tokens of the request come before the first row; every row sees all of them.
        causal: a row sees the rows before it and itself; else all rows of the piece. With blocks, both see the rows
            up to the end of their own block.
        read: rows whose predictions are wanted.
        behind: how many keys after the rows' own, still in the table, are visible to every row. Such a piece is part
            of one block.
    """

    ids: Sequence[int]
    table: PageTable
    context: int
    causal: bool
    read: Sequence[int] = ()
    behind: int = 0

    @property
    def stop(self) -> int:
        """Position after the last row."""
        return self.context + len(self.ids)


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


_LIBRARY: Final = torch.library.Library("calomel", "FRAGMENT")
_LIBRARY.define(
    "attend(Tensor q, Tensor keys, Tensor values, Tensor positions, Tensor seen, Tensor first, Tensor floor, "
    "Tensor tables, Tensor tiles, int page, int window) -> Tensor"
)


class Sight(NamedTuple):
    """What the rows of a forward see; the arguments of `calomel::attend` after queries, keys and values.

    Attributes:
        positions: [T] int32, of the rows.
        seen: [T] int32, how many leading keys of its request a row sees at most.
        first: [B + 1] int32, the first row of each piece, then their number.
        floor: [B] int32, keys from this one on are visible to a piece whatever the window.
        tables: [B, P] int32, the pages of each piece.
        tiles: [2, N] int32, the tiles of the kernel: the piece of each, or -1, and its first row of queries.
        page: tokens of a page.
        window: a row sees the keys whose position is less than this before its own; 0 for all.
    """

    positions: Tensor
    seen: Tensor
    first: Tensor
    floor: Tensor
    tables: Tensor
    tiles: Tensor
    page: int
    window: int


def _attend(q: Tensor, keys: Tensor, values: Tensor, *how: Any) -> Tensor:
    """Q [T, Hq, D] over keys and values [Hkv, S, D] to [T, Hq, D]; rows of no piece become anything."""
    sight = Sight(*how)
    if q.is_cuda and has_kernel(q.device, q.shape[-1], sight.page):
        found: Tensor = import_module("calomel.engine.kernels").attend(q, keys, values, sight)
        return found
    return attend(q, keys, values, sight)


def attend(q: Tensor, keys: Tensor, values: Tensor, sight: Sight) -> Tensor:
    """The same by products of matrices, on any device."""
    out = torch.empty_like(q)
    for tile in _plan(q, keys, sight):
        tile(q, keys, values, out)
    return out


for _key in ("CPU", "CUDA", "MPS"):
    _LIBRARY.impl("attend", _attend, _key)
torch.library.register_fake("calomel::attend", lambda q, *_: torch.empty_like(q), lib=_LIBRARY)


@functools.cache
def has_kernel(device: torch.device, width: int, page: int) -> bool:
    """Whether the kernel runs on `device`, for heads of `width` and pages of `page` tokens, and is right.

    If not, the log says why.
    """
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < _AMPERE:
        return False
    try:
        import_module("calomel.engine.kernels").check(device, width, page)
    except Exception as error:  # noqa: BLE001  (a kernel fails in many ways, none of them fatal)
        LOG.warning("attention is slower than it could be: its kernel is not used: %s", cause(error))
        return False
    return True


@functools.cache
def flash_attention(device: torch.device) -> Callable[..., Tensor] | None:
    """`flash_attn_func` of the package flash-attn, for long chunks of context; None where it is missing or wrong."""
    try:
        flash: Callable[..., Tensor] = import_module("flash_attn").flash_attn_func
        q, k = (torch.randn(1, rows, heads, 64, device=device).bfloat16() for rows, heads in ((70, 4), (200, 2)))
        for window in (None, 32):
            place = torch.arange(200, device=device)
            behind = place[-70:, None] - place
            mask = (behind >= 0) & (behind < (window or 200))
            rows, held = q.transpose(1, 2).float(), k.transpose(1, 2).float()
            wanted = F.scaled_dot_product_attention(rows, held, held, attn_mask=mask, enable_gqa=True)
            found = flash(q, k, k, causal=True, window_size=(-1 if window is None else window - 1, -1))
            torch.testing.assert_close(found.transpose(1, 2).float(), wanted, atol=3e-2, rtol=3e-2)
    except ImportError:
        return None
    except Exception as error:  # noqa: BLE001  (a kernel fails in many ways, none of them fatal)
        LOG.warning("flash-attn is not used: %s", cause(error))
        return None
    return flash


class Scratch:
    """Where rows that attend together are computed.

    The query heads of a group become rows of their key head, so that no key is repeated: `folded` [Hkv, G * rows, D],
    and scores [Hkv, G * rows, keys].

    Args:
        shape: rows, Hkv, G, D.
        lengths: of the runs of keys.
        take: gives a tensor of a shape.
    """

    def __init__(
        self, shape: tuple[int, int, int, int], lengths: Sequence[int], take: Callable[..., list[Tensor]]
    ) -> None:
        rows, held, groups, width = self.shape = shape
        folded, ends = (held, groups * rows, width), [0, *accumulate(lengths)]
        scores = (*folded[:2], ends[-1])
        queries, found, self.scores, self.chances = take(folded, folded, scores, scores)
        self.queries, self.found = (part.view(held, groups, rows, width) for part in (queries, found))
        self.by_row = self.scores.view(held, groups, rows, -1)
        parts = [slice(*pair) for pair in pairwise(ends)]
        self.heads = [
            (query, [score[:, part] for part in parts], [chance[:, part] for part in parts], out)
            for query, score, chance, out in zip(queries, self.scores, self.chances, found, strict=True)
        ]
        self.nothing, self.scale = queries.new_empty(1), width**-0.5


class _Kept(threading.local):
    """What a thread keeps between layers and steps: room for scores, and what the rows of the last forwards see."""

    def __init__(self) -> None:
        self.plans: list[tuple[Tensor, int, list[Tile]]] = []
        self.room: dict[tuple[torch.dtype, torch.device], Tensor] = {}
        self.scratch: dict[object, Scratch] = {}

    def get(self, q: Tensor, rows: int, held: int, lengths: Sequence[int]) -> Scratch:
        """Scratch of the type of `q`; all of it is the same memory."""
        shape = (rows, held, q.shape[1] // held, q.shape[2])
        key = (shape, *lengths, q.dtype, q.device)
        if key not in self.scratch:
            made = Scratch(shape, lengths, functools.partial(self._take, q))
            if len(self.scratch) >= _SCRATCHES:
                self.scratch.clear()
            self.scratch[key] = made
        return self.scratch[key]

    def _take(self, like: Tensor, *shapes: tuple[int, ...]) -> list[Tensor]:
        sizes = [math.prod(shape) for shape in shapes]
        kind, wanted = (like.dtype, like.device), sum(sizes)
        if kind not in self.room or len(self.room[kind]) < wanted:
            self.scratch.clear()  # of the smaller room
            self.room[kind] = like.new_empty(wanted + wanted // 4)
        parts = self.room[kind][:wanted].split(sizes)
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


_KEPT: Final = _Kept()


def _plan(q: Tensor, keys: Tensor, sight: Sight) -> list[Tile]:
    """The tiles of a forward, worked out once for all layers that see alike."""
    plans = _KEPT.plans
    for owner, window, tiles in plans:
        if owner is sight.first and window == sight.window:
            return tiles
    made = list(_tiles(q, keys, sight))
    plans.append((sight.first, sight.window, made))
    del plans[:-_PLANS]
    return made


def _tiles(q: Tensor, keys: Tensor, sight: Sight) -> Iterator[Tile]:
    """The rows of every piece in tiles."""
    starts, floors, tables = sight.first.tolist(), sight.floor.tolist(), sight.tables.cpu().numpy()
    place, limit, page, window = sight.positions.cpu().numpy(), sight.seen.cpu().numpy(), sight.page, sight.window
    for (begin, end), floor, table in zip(pairwise(starts), floors, tables, strict=True):
        for start in range(begin, end, TILE):
            rows = slice(start, min(start + TILE, end))
            first, last = int(limit[start]), int(limit[rows.stop - 1])
            lows = [min(max(int(place[row]) - window + 1, 0), floor) if window else 0 for row in (start, rows.stop - 1)]
            # Whole pages: lengths that come again need no new kernel of oneDNN.
            low, high = lows[0] - lows[0] % page, last + -last % page
            runs = runs_of(table, page, low, high)
            scratch = _KEPT.get(q, rows.stop - start, len(keys), [run.stop - run.start for run in runs])
            hidden: list[tuple[Tensor, Tensor | None]] = []
            if lows[1] > low:
                part, unseen = scratch.by_row[..., : lows[1] - low], None
                if lows[0] < lows[1]:
                    least = np.minimum(np.maximum(place[rows] - window + 1, 0), floor)
                    unseen = torch.from_numpy(np.arange(low, lows[1]) < least[:, None]).to(q.device)
                hidden.append((part, unseen))
            if first < high:
                part, unseen = scratch.by_row[..., first - low :], None
                if first < last:
                    unseen = torch.from_numpy(np.arange(first, high) >= limit[rows, None]).to(q.device)
                hidden.append((part, unseen))
            yield Tile(rows, runs, scratch, hidden)


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows that attend together, over the keys of whole pages.

    Products of two matrices read keys and values where they are; a batched one would copy them, and with bfloat16
    `scaled_dot_product_attention` takes twice as long behind long contexts.

    Attributes:
        rows: those that attend.
        runs: where their keys are.
        scratch: where they are computed.
        hidden: parts of its scores, and which of them a row does not see: [rows, keys] bool, None for all of them.
    """

    rows: slice
    runs: Sequence[slice]
    scratch: Scratch
    hidden: Sequence[tuple[Tensor, Tensor | None]]

    def __call__(self, q: Tensor, keys: Tensor, values: Tensor, out: Tensor) -> None:
        """Write what the rows of q [T, Hq, D] take from keys and values [Hkv, S, D] to those of `out`."""
        scratch, runs = self.scratch, self.runs
        scratch.queries.copy_(q[self.rows].view(scratch.shape).permute(1, 2, 0, 3))
        for key, (query, scores, _, _) in zip(keys.unbind(), scratch.heads, strict=True):
            for run, score in zip(runs, scores, strict=True):
                torch.addmm(scratch.nothing, query, key[run].t(), beta=0, alpha=scratch.scale, out=score)
        for part, unseen in self.hidden:
            if unseen is None:
                part.fill_(-torch.inf)
            else:
                part.masked_fill_(unseen, -torch.inf)
        torch.softmax(scratch.scores, -1, out=scratch.chances)
        for value, (_, _, chances, own) in zip(values.unbind(), scratch.heads, strict=True):
            torch.mm(chances[0], value[runs[0]], out=own)
            for run, chance in zip(runs[1:], chances[1:], strict=True):
                own.addmm_(chance, value[run])
        out[self.rows].view(scratch.shape).permute(1, 2, 0, 3).copy_(scratch.found)
