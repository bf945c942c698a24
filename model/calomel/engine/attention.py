"""One flat forward: the rows of all active requests side by side, without padding, and how they attend.

A forward concatenates pieces. A piece is a run of consecutive positions of one request. It attends to the keys and
values that its request already has and to itself: causally (context, verification), or in both directions (canvas).
Where the checkpoint reads its context in blocks, every piece begins at a block and attends to itself block by block.
Keys are read in their pages: by matrix products, one for each head, piece and run of neighbouring pages, or on CUDA by
flash attention, in one call for all pieces that see alike. It has no mask for pieces of several blocks, nor for a
canvas longer than a window.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.config import ModelConfig
from calomel.engine.pages import Pages, PageTable
from calomel.engine.transformer import Transformer

LOG: Final = logging.getLogger(__name__)
# Rows that attend at a time: on a CPU, their scores stay in its cache; on a GPU, a launch costs more than its products.
_TILE: Final = 64
_GPU_TILE: Final = 256
# The pages that flash-attn 2 reads have a multiple of this many tokens.
FLASH_PAGE: Final = 256
# The oldest compute capability that flash-attn runs on.
_AMPERE: Final = (8, 0)
# Devices on which attention is computed one head of keys at a time.
HEAD_BY_HEAD: Final = ("cpu",)

Flash = Callable[..., Tensor]
"""Attention of runs of rows, over pages of keys if `block_table` is given: `flash_attn_varlen_func` of flash-attn 2."""


@functools.cache
def flash_attention(device: torch.device) -> Flash | None:
    """Flash-attn's function where its package works, else PyTorch's; None on a device that runs neither."""
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < _AMPERE:
        return None
    return next((each for each in (*_flash_attn(), torch_flash) if works(each, device)), None)


def _flash_attn() -> Iterator[Flash]:
    try:
        yield importlib.import_module("flash_attn").flash_attn_varlen_func
    except (ImportError, AttributeError, OSError):  # OSError: its library misses a symbol
        return


def torch_flash(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    queries: Tensor,
    keys: Tensor,
    *most: int,
    causal: bool,
    window_size: tuple[int, int],
    block_table: Tensor | None,
) -> Tensor:
    """PyTorch's own flash attention, called like flash-attn's."""
    left, right = window_size
    found: Tensor = importlib.import_module("torch.nn.attention.varlen").varlen_attn(
        q,
        k,
        v,
        queries,
        keys,
        *most,
        window_size=(left, 0 if causal else right),
        enable_gqa=True,
        seqused_k=None if block_table is None else keys.diff(),
        block_table=block_table,
    )
    return found


def works(flash: Flash, device: torch.device) -> bool:
    """Whether `flash` gives on a small example what matrix products give; else the log says why it is not used."""
    generator = torch.Generator(device).manual_seed(0)
    q, k, v = (
        torch.randn(size, heads, 64, generator=generator, device=device, dtype=torch.bfloat16)
        for size, heads in ((8, 4), (4 * FLASH_PAGE, 2), (4 * FLASH_PAGE, 2))
    )
    k, v = (each.unflatten(0, (-1, FLASH_PAGE)) for each in (k, v))
    runs = ((slice(0, 3), [2, 0], 300), (slice(3, 8), [1, 3], 40))  # rows, pages, keys
    queries, keys, table = (
        torch.tensor(each, dtype=torch.int32, device=device)
        for each in ([0, 3, 8], [0, 300, 340], [pages for _, pages, _ in runs])
    )
    try:
        for causal, window in ((False, (-1, -1)), (True, (9, 0))):
            found = flash(q, k, v, queries, keys, 5, 300, causal=causal, window_size=window, block_table=table)
            for rows, pages, count in runs:
                own = q[rows].transpose(0, 1).float()
                held, values = (each[pages].flatten(0, 1)[:count].transpose(0, 1).float() for each in (k, v))
                place = torch.arange(count, device=device)
                behind = place[-own.shape[1] :, None] - place
                mask = (behind >= 0) & (behind <= window[0]) if causal else None
                wanted = F.scaled_dot_product_attention(own, held, values, attn_mask=mask, enable_gqa=True)
                torch.testing.assert_close(found[rows].float(), wanted.transpose(0, 1), atol=3e-2, rtol=3e-2)
    except Exception as error:  # noqa: BLE001  (a kernel fails in many ways, none of them fatal)
        LOG.warning("%s is not used: %r", flash.__module__, error)
        return False
    return True


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive rows of one request in a forward, at positions context, context + 1, ...

    Attributes:
        ids: token ids [n].
        table: where the request's keys and values are; those of the rows are written after its first `context` tokens.
            A canvas' are scratch: they come after what the request has committed. None if nothing comes before the rows
            and nothing of them is kept.
        context: how many tokens of the request come before the first row; every row sees all of them.
        causal: a row sees the rows before it and itself; else all rows of the piece. With blocks, both see the rows
            up to the end of their own block.
        read: rows whose logits are wanted.
        behind: how many keys after the rows' own, still in the table, are visible to every row. Such a piece is part
            of one block.
    """

    ids: Sequence[int]
    table: PageTable | None
    context: int
    causal: bool
    read: Sequence[int] = ()
    behind: int = 0

    @property
    def stop(self) -> int:
        """Position after the last row."""
        return self.context + len(self.ids)

    def runs(self, start: int, stop: int) -> list[slice]:
        """Where its keys from position `start` to `stop` are: in the pool of its table, or in its own rows."""
        return [slice(start, stop)] if self.table is None else self.table.runs(start, stop)


def forward(model: Transformer, pieces: Sequence[Piece], flash: Flash | None = None) -> Tensor:
    """The logits [R, V] float32 of the rows that `pieces` want read, in order.

    Every table has room for its piece, and then holds the keys and values of all rows from `context` on; `length` is
    left to the caller.
    """
    device = model.embed_tokens.weight.device
    ids = torch.tensor([token for piece in pieces for token in piece.ids], dtype=torch.int64, device=device)
    positions = torch.tensor([place for piece in pieces for place in range(piece.context, piece.stop)], device=device)
    attend = PieceAttention(model.config, pieces, device, flash)
    read = [start + row for piece, start in zip(pieces, attend.starts, strict=False) for row in piece.read]
    wanted = torch.tensor(read, dtype=torch.int64, device=device) if len(read) < len(ids) else None
    return model.logits(model(ids, positions, attend, wanted))


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


@dataclass(frozen=True, slots=True)
class Write:
    """Where the keys and values of `rows` of a forward go: to the rows `places` of `pool`."""

    pool: Pages
    rows: slice | Tensor
    places: slice | Tensor

    def __call__(self, layer: int, k: Tensor, v: Tensor) -> None:
        """Write k and v [T, Hkv, D], those of all rows."""
        for held, made in ((self.pool.keys[layer], k), (self.pool.values[layer], v)):
            own = made[self.rows].transpose(0, 1)
            if isinstance(self.places, slice):
                held[:, self.places] = own
            else:
                held.index_copy_(1, self.places, own)


@dataclass(frozen=True, slots=True)
class Batch:
    """Pieces that flash-attn takes in one call.

    Attributes:
        rows: of the forward.
        queries: [B + 1] int32, where the rows of each piece begin, and their number; `keys` likewise.
        most_queries: of one piece; `most_keys` likewise.
        pool: has the keys; None if the rows see each other only.
        pages: [B, N] int32, the pages of each piece.
        how: `causal` and `window_size`.
    """

    rows: slice | Tensor
    queries: Tensor
    keys: Tensor
    most_queries: int
    most_keys: int
    pool: Pages | None
    pages: Tensor | None
    how: tuple[bool, tuple[int, int]]

    def __call__(self, flash: Flash, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [T, Hq, D], k and v [T, Hkv, D] of all rows to the output of `rows`."""
        causal, window = self.how
        keys, values = (k[self.rows], v[self.rows]) if self.pool is None else self.pool.paged(layer)
        return flash(
            q[self.rows],
            keys,
            values,
            self.queries,
            self.keys,
            self.most_queries,
            self.most_keys,
            causal=causal,
            window_size=window,
            block_table=self.pages,
        )


class PieceAttention:
    """The `Attend` of one forward.

    With a sliding window w, a row sees the keys whose position is less than w before its own; a canvas row also sees
    all rows of its canvas. In the last layer, rows whose output is not read have keys and values but no queries: for a
    chunk of a long context that saves half of the attention if one layer in three sees all of it.

    Canvases of one request, of which the best is to be chosen, are written to the same place: they attend one in each
    round. What is the same in every layer is worked out once.

    Attributes:
        starts: the first row of every piece, then the number of rows.
    """

    def __init__(
        self, config: ModelConfig, pieces: Sequence[Piece], device: torch.device, flash: Flash | None = None
    ) -> None:
        self._config = config
        self._pieces = pieces
        self._flash = flash
        self._tiles: dict[tuple[int, int | None], list[Tile]] = {}
        self.starts = list(accumulate((len(piece.ids) for piece in pieces), initial=0))
        self._own = [slice(*pair) for pair in pairwise(self.starts)]
        self._rounds = _rounds(pieces)
        # Before the first kernel: a copy to a GPU waits for all that is queued there.
        self._writes = [list(self._written(members, device)) for members in self._rounds]
        layers = config.num_hidden_layers
        kinds = {(config.window(layer), layer == layers - 1) for layer in range(layers)}
        self._plans = {
            (number, window, last): self._plan(number, window, device, last=last)
            for number in range(len(self._rounds))
            for window, last in kinds
        }

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [T, Hq, D], k and v [T, Hkv, D] to [T, Hq, D]."""
        window = self._config.window(layer)
        last = layer == self._config.num_hidden_layers - 1
        parts, batched = dict[int, Tensor](), list[tuple[slice | Tensor, Tensor]]()
        for number, writes in enumerate(self._writes):
            for write in writes:
                write(layer, k, v)
            batches, others = self._plans[number, window, last]
            batched += [(each.rows, each(self._flash, layer, q, k, v)) for each in batches if self._flash]
            parts |= {index: self._attend(index, layer, q, k, v, window, last=last) for index in others}
        if not batched:  # what nobody reads is anything
            found = [parts.get(index, q[own]) for index, own in enumerate(self._own)]
            return found[0] if len(found) == 1 else torch.cat(found)
        if len(batched) == 1 and not parts and isinstance(batched[0][0], slice) and len(batched[0][1]) == len(q):
            return batched[0][1]
        out = torch.empty_like(q)
        for rows, part in (*batched, *((self._own[index], part) for index, part in parts.items())):
            out[rows] = part
        return out

    def _written(self, members: Sequence[int], device: torch.device) -> Iterator[Write]:
        """What a round writes."""
        by_pool = defaultdict[Pages, list[int]](list)
        for index in members:
            table = self._pieces[index].table
            if table is not None:
                by_pool[table.pool].append(index)
        for pool, mine in by_pool.items():
            pieces = [self._pieces[index] for index in mine]
            places = [run for piece in pieces for run in piece.runs(piece.context, piece.stop)]
            yield Write(pool, _joined([self._own[index] for index in mine], device), _joined(places, device))

    def _plan(
        self, number: int, window: int | None, device: torch.device, *, last: bool
    ) -> tuple[list[Batch], list[int]]:
        """The batches of a round, and the pieces in none of them; in the last layer, only what somebody reads."""
        alike = defaultdict[tuple[Pages | None, bool, tuple[int, int]], list[int]](list)
        others = []
        for index in self._rounds[number]:
            piece = self._pieces[index]
            if last and not piece.read:
                continue
            if self._flash is None or not self._plain(piece, window):
                others.append(index)
                continue
            ordered = piece.causal and self._config.diffusion.block == 1
            seen = (-1 if window is None else window - 1, 0 if ordered else -1)
            pool = piece.table.pool if piece.table is not None and piece.context else None
            alike[pool, ordered, seen].append(index)
        batches = [self._batch(mine, pool, (ordered, seen), device) for (pool, ordered, seen), mine in alike.items()]
        return batches, others

    def _plain(self, piece: Piece, window: int | None) -> bool:
        """Whether flash-attn can express what `piece` sees: no blocks, and no window that exempts a canvas."""
        block, rows = self._config.diffusion.block, len(piece.ids)
        if piece.behind or (piece.table is not None and piece.context and piece.table.pool.size % FLASH_PAGE):
            return False
        return rows <= block if block > 1 else piece.causal or window is None or rows <= window

    def _batch(
        self, mine: Sequence[int], pool: Pages | None, how: tuple[bool, tuple[int, int]], device: torch.device
    ) -> Batch:
        pieces = [self._pieces[index] for index in mine]
        sizes = [len(piece.ids) for piece in pieces]
        seen = sizes if pool is None else [piece.stop for piece in pieces]
        pages = None
        if pool is not None:
            used = [[] if piece.table is None else piece.table.pages[: -(-piece.stop // pool.size)] for piece in pieces]
            most = max(map(len, used))
            pages = torch.tensor(
                [[*each, *[0] * (most - len(each))] for each in used], dtype=torch.int32, device=device
            )
        queries, keys = (
            torch.tensor([0, *accumulate(each)], dtype=torch.int32, device=device) for each in (sizes, seen)
        )
        rows = _joined([self._own[index] for index in mine], device)
        return Batch(rows, queries, keys, max(sizes), max(seen), pool, pages, how)

    def _attend(
        self, index: int, layer: int, q: Tensor, k: Tensor, v: Tensor, window: int | None, *, last: bool
    ) -> Tensor:
        piece, own = self._pieces[index], self._own[index]
        q = q[own]
        if piece.table is None:
            keys, values = k[own].transpose(0, 1), v[own].transpose(0, 1)
        else:
            keys, values = piece.table.pool.keys[layer], piece.table.pool.values[layer]
        if (index, window) not in self._tiles:
            self._tiles[index, window] = list(_tiles(piece, window, self._config.diffusion.block, q.device))
        tiles = self._tiles[index, window]
        alike = all(tile.runs == tiles[0].runs and not tile.hidden for tile in tiles)
        if last and len(piece.read) < len(q) and alike:
            read = torch.tensor(piece.read, device=q.device)
            return torch.empty_like(q).index_copy_(0, read, attend(q[read], keys, values, tiles[0]))
        parts = [attend(q[tile.rows], keys, values, tile) for tile in tiles]
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def _rounds(pieces: Iterable[Piece]) -> list[list[int]]:
    """The pieces of each round: of those of one request that are at the same place, one."""
    rounds, taken = list[list[int]](), Counter[tuple[int, int]]()
    for index, piece in enumerate(pieces):
        place = (id(piece) if piece.table is None else id(piece.table), piece.context)
        if taken[place] == len(rounds):
            rounds.append([])
        rounds[taken[place]].append(index)
        taken[place] += 1
    return rounds


def _joined(parts: Sequence[slice], device: torch.device) -> slice | Tensor:
    """The rows of all `parts`, in order: one slice if they follow one another, else their indices."""
    if all(part.stop == following.start for part, following in pairwise(parts)):
        return slice(parts[0].start, parts[-1].stop)
    return torch.tensor([row for part in parts for row in range(part.start, part.stop)], device=device)


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows that attend together, over the keys of whole pages: lengths that come again need no new kernel of oneDNN.

    Attributes:
        rows: of the piece.
        runs: where the keys are.
        hidden: pairs of a range of those keys, counted from the first of them, and which of them, [rows, keys] bool,
            a row does not see. They are few: those around the edge of a window, and those of the rows themselves.
        unused: how many of the last keys no row sees.
    """

    rows: slice
    runs: list[slice]
    hidden: tuple[tuple[slice, Tensor], ...]
    unused: int


def _tiles(piece: Piece, window: int | None, block: int, device: torch.device) -> Iterator[Tile]:
    """The rows of `piece` in tiles."""
    size, base = len(piece.ids), piece.context
    # The rows see each other in runs of this many, counted from the first: 1 is causal.
    run = block if 1 < block < size else size if block > 1 or not piece.causal else 1
    most = _TILE if device.type in HEAD_BY_HEAD else _GPU_TILE
    step = most if run == size else max(most // run, 1) * run
    for start in range(0, size, step):
        stop = min(start + step, size)
        first = 0 if window is None else max(0, base + start - window + 1)
        # The keys that the first row of the tile sees and its last one does not.
        beyond = 0 if window is None else max(0, base + stop - window - first)
        if run > 1:  # a window hides nothing of the piece
            first = min(first, base)
            beyond = min(beyond, base - first)
        end = piece.stop + piece.behind if run == size else base + stop
        page = 1 if piece.table is None else piece.table.pool.size
        low, high = first - first % page, end + -end % page
        hidden = []
        row = torch.arange(start, stop, device=device)[:, None]
        if first + beyond > low and window is not None:
            key = torch.arange(low, first + beyond, device=device)
            hidden.append((slice(0, len(key)), key <= base + row - window))
        if run < stop - start:
            key = torch.arange(start, stop, device=device)
            hidden.append((slice(base + start - low, base + stop - low), key // run > row // run))
        yield Tile(slice(start, stop), piece.runs(low, high), tuple(hidden), high - end)


def attend(q: Tensor, keys: Tensor, values: Tensor, tile: Tile) -> Tensor:
    """Attention of the rows q [T, Hq, D] of `tile` over keys and values [Hkv, S, D]: [T, Hq, D].

    The query heads of a group become rows of their key head, so that no key is repeated. On a CPU, products of two
    matrices read keys and values where they are (a batched one would copy them), and with bfloat16 need half of the
    time of `scaled_dot_product_attention`; elsewhere, batched ones read them there too, with fewer kernels.
    """
    rows, heads, width = q.shape
    groups = heads // len(keys)
    folded = q.view(rows, -1, groups, width).permute(1, 2, 0, 3).reshape(-1, groups * rows, width)
    ends = list(accumulate((run.stop - run.start for run in tile.runs), initial=0))
    places, scale = [slice(*pair) for pair in pairwise(ends)], width**-0.5
    if q.device.type in HEAD_BY_HEAD:
        nothing, out = q.new_empty(1), torch.empty_like(folded)
        for own, key, value, result in zip(folded, keys, values, out, strict=True):
            parts = [torch.addmm(nothing, own, key[run].t(), beta=0, alpha=scale) for run in tile.runs]
            chances = _chances(parts, tile, rows)
            torch.mm(chances[:, places[0]], value[tile.runs[0]], out=result)
            for run, place in zip(tile.runs[1:], places[1:], strict=True):
                result.addmm_(chances[:, place], value[run])
    else:
        nothing = q.new_empty(1, 1, 1)
        parts = [torch.baddbmm(nothing, folded, keys[:, run].mT, beta=0, alpha=scale) for run in tile.runs]
        chances = _chances(parts, tile, rows)
        out = torch.bmm(chances[..., places[0]], values[:, tile.runs[0]])
        for run, place in zip(tile.runs[1:], places[1:], strict=True):
            out.baddbmm_(chances[..., place], values[:, run])
    return out.view(-1, groups, rows, width).permute(2, 0, 1, 3).reshape(rows, heads, width)


def _chances(parts: Sequence[Tensor], tile: Tile, rows: int) -> Tensor:
    """How much of each value a row takes: [..., groups * T, S], from the scores of each run of keys."""
    scores = parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=-1)
    if tile.unused:
        scores[..., -tile.unused :].fill_(-torch.inf)
    for columns, unseen in tile.hidden:
        scores.unflatten(-2, (-1, rows))[..., columns].masked_fill_(unseen, -torch.inf)
    return scores.softmax(dim=-1)
