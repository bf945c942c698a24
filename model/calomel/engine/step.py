"""One step of the engine: all rows of a forward, from one copy in to one copy out.

What a forward is about goes into one array of int32 (`Layout`). Everything computed from it has shapes that depend on
the layout's size alone, and nothing waits for the device before the end: so on CUDA a step of few rows is recorded once
for each of a few sizes and replayed, and a processor runs the same code at the size that a step has.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from calomel.engine.attention import TILE, Piece, flash_attention, has_kernel
from calomel.engine.pages import Pages
from calomel.engine.sampling import LOWEST, Told, tell
from calomel.engine.transformer import Transformer

LOG: Final = logging.getLogger(__name__)
# Rows of the steps that are recorded, and pieces. A step beyond the last is a chunk of context, whose launches cost
# little beside its arithmetic.
RECORDED: Final = ((16, 16), (48, 16), (128, 32), (320, 64), (832, 128), (2112, 128))
# Rows of a chunk of context from which flash-attn takes it.
_LONG: Final = 128
# Logits that exist at a time.
_LOGITS: Final = 1 << 26
_EVERY: Final = np.arange(1 << 21, dtype=np.int32)
# No key of a piece is exempt from a window.
_NEVER: Final = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Size:
    """How large a layout is: rows, pieces, rows that are read, pages of a piece, and tiles of the kernel."""

    rows: int
    pieces: int
    read: int
    pages: int
    tiles: int = 0

    @property
    def parts(self) -> tuple[int, ...]:
        """The lengths of the parts of a `Layout`, in order."""
        rows, pieces, read, tiles = self.rows, self.pieces, self.read, self.tiles
        return (rows,) * 4 + (pieces + 1, pieces, pieces * self.pages, read, pieces + 1, read, read, *(2 * tiles,) * 2)


class Layout:
    """What one forward is about.

    Attributes:
        array: int32; the rest are parts of it.
        ids: [R] token ids; `positions` [R]; `slots` [R], the rows of the pool that take their keys and values.
        seen: [R], how many leading keys of its request a row sees.
        first: [B + 1], the first row of each piece; `first_read` [B + 1], the first of its rows that are read.
        floor: [B], keys from this one on are visible to a piece whatever the window; `tables` [B, P], its pages.
        wanted: [W], rows that are read; `forced` [W], the token that such a row has to take, or -1; `open` [W], 1 where
            it may not predict an end.
        tiles: [2, N], of the kernel, for all rows; `tiles_read` [2, N], for those that are read.
    """

    def __init__(self, size: Size, array: Any) -> None:
        self.size, self.array = size, array
        parts: Sequence[Any] = (
            array.split(size.parts) if isinstance(array, Tensor) else np.split(array, np.cumsum(size.parts)[:-1])
        )
        self.ids, self.positions, self.slots, self.seen, self.first, self.floor, tables, *rest = parts
        self.wanted, self.first_read, self.forced, self.open, tiles, tiles_read = rest
        self.tables = tables.reshape(size.pieces, size.pages)
        self.tiles, self.tiles_read = tiles.reshape(2, size.tiles), tiles_read.reshape(2, size.tiles)

    def fill(self, pieces: Sequence[Piece], block: int, groups: int, untiled: Container[int] = ()) -> None:
        """Write `pieces`, whose rows fit, to the arrays of the host; `block` of the checkpoint, `groups` of heads.

        The kernel takes all but the pieces of these numbers.
        """
        pool = pieces[0].table.pool
        self.slots.fill(pool.spare)
        self.forced.fill(-1)
        self.open.fill(0)
        row = read = 0
        counts, reads = [0] * (self.size.pieces + 1), [0] * (self.size.pieces + 1)
        for number, piece in enumerate(pieces):
            context, stop, size = piece.context, piece.stop, len(piece.ids)
            own = slice(row, row + size)
            self.ids[own] = piece.ids
            self.positions[own] = _EVERY[context:stop]
            at = row
            for run in piece.table.runs(context, stop):
                length = run.stop - run.start
                self.slots[at : at + length] = _EVERY[run]
                at += length
            ordered = piece.causal and block == 1
            if ordered:
                self.seen[own] = _EVERY[context + 1 : stop + 1]
            elif 1 < block < size:
                self.seen[own] = np.minimum(context + (_EVERY[:size] // block + 1) * block, stop)
            else:
                self.seen[own] = stop + piece.behind
            self.floor[number] = _NEVER if ordered else context
            line = piece.table.line()[: -(-(stop + piece.behind) // pool.size)]
            self.tables[number, : len(line)] = line
            wanted = piece.read
            if wanted:
                self.wanted[read : read + len(wanted)] = wanted
                self.wanted[read : read + len(wanted)] += row
            row, read = row + size, read + len(wanted)
            counts[number + 1], reads[number + 1] = size, len(wanted)
        for target, tiles, lengths in (
            (self.first, self.tiles, counts),
            (self.first_read, self.tiles_read, reads),
        ):
            target[:] = list(accumulate(lengths))
            if self.size.tiles:
                tiled = [(number, n) for number, n in enumerate(lengths[1:]) if number not in untiled]
                cut = [(number, at) for number, n in tiled for at in range(0, n * groups, TILE)]
                tiles[0] = -1
                tiles[:, : len(cut)] = np.array(cut, dtype=np.int32).reshape(-1, 2).T


class Step:
    """Forwards of one network over one pool of pages.

    Args:
        model: the network, on its device.
        pool: of the keys and values of all requests.
        ends: tokens that end an answer.

    Attributes:
        memory: that all recordings share.
        hidden: [W, C], the states after the last norm of the rows that the last call read.
    """

    def __init__(self, model: Transformer, pool: Pages, ends: Sequence[int]) -> None:
        self.model, self.pool = model, pool
        config = model.config
        self.device = model.embed_tokens.weight.device
        self._ends = torch.tensor(
            sorted({*ends} & set(range(config.vocab_size))), dtype=torch.int64, device=self.device
        )
        self._groups = config.num_attention_heads // config.num_key_value_heads
        self._tiled = has_kernel(self.device, config.head_dim, pool.size)
        self._flash: Any = flash_attention(self.device) if self._tiled and config.diffusion.block == 1 else None
        self._pages = -(-config.max_position_embeddings // pool.size) + 1
        self._recorded: dict[Size, Recording | None] = {}
        self.hidden = self._open = torch.empty(0)
        # What one recording has computed is read before another is replayed.
        self.memory: Any = torch.cuda.graph_pool_handle() if self._tiled else None

    def __call__(
        self, pieces: Sequence[Piece], forced: Sequence[tuple[int, int]] = (), unending: Sequence[int] = ()
    ) -> Told:
        """What the rows that `pieces` read predict, in order.

        Every table has room for its piece, and then holds the keys and values of all its rows from `context` on;
        `length` is left to the caller.

        Args:
            pieces: at least one.
            forced: pairs of a read row and the token that it has to take.
            unending: read rows that may not predict an end.
        """
        size = self._size(pieces)
        recording = self._recording(size) if self._tiled else None
        layout = Layout(size, np.zeros(sum(size.parts), dtype=np.int32)) if recording is None else recording.host
        chunks = self._chunks(pieces) if recording is None else {}
        layout.fill(pieces, self.model.config.diffusion.block, self._groups, chunks)
        for row, token in forced:
            layout.forced[row] = token
        if unending:
            layout.open[list(unending)] = 1
        if recording is None:
            here = Layout(size, torch.from_numpy(layout.array).to(self.device, non_blocking=True))
            self._open = here.open
            self.hidden, told = self.compute(here, tuple(chunks.values()))
        else:
            self._open = recording.here.open
            self.hidden, told = recording()
        return Told.of(told[:, : sum(len(piece.read) for piece in pieces)])

    def logits(self, rows: Sequence[int]) -> Tensor:
        """The logits [N, V] float32 of read `rows` of the last call, without what they may not predict."""
        chosen = torch.tensor(rows, dtype=torch.int64).to(self.device)
        return self._allowed(self.model.logits(self.hidden[chosen]), self._open[chosen])

    def _chunks(self, pieces: Sequence[Piece]) -> dict[int, tuple[slice, Tensor]]:
        """By number, the rows of the pieces that flash-attn takes, and the rows of the pool that their keys are in."""
        if self._flash is None:
            return {}
        found, starts = dict[int, tuple[slice, Tensor]](), accumulate((len(piece.ids) for piece in pieces), initial=0)
        for number, (piece, start) in enumerate(zip(pieces, starts, strict=False)):
            if piece.causal and not piece.read and len(piece.ids) >= _LONG:
                places = np.concatenate([_EVERY[run] for run in piece.table.runs(0, piece.stop)])
                found[number] = slice(start, start + len(piece.ids)), torch.from_numpy(places).to(self.device)
        return found

    def compute(self, layout: Layout, chunks: Sequence[tuple[slice, Tensor]] = ()) -> tuple[Tensor, Tensor]:
        """The hidden states of the rows that `layout`, on the device, reads [W, C], and what they tell [3, W]."""
        config, pool, last = self.model.config, self.pool, self.model.config.num_hidden_layers - 1
        slots = layout.slots.long()
        every = (layout.positions, layout.seen, layout.first, layout.floor, layout.tables, layout.tiles)
        read = (
            layout.positions[layout.wanted],
            layout.seen[layout.wanted],
            layout.first_read,
            *every[3:5],
            layout.tiles_read,
        )

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = pool.keys[layer], pool.values[layer]
            keys.index_copy_(1, slots, k.transpose(0, 1))
            values.index_copy_(1, slots, v.transpose(0, 1))
            plan = read if layer == last else every
            window = config.window(layer) or 0
            found: Tensor = torch.ops.calomel.attend(q, keys, values, *plan, pool.size, window)
            for rows, places in chunks if layer != last else ():
                held = (each.index_select(1, places).transpose(0, 1)[None] for each in (keys, values))
                found[rows] = self._flash(q[None, rows], *held, causal=True, window_size=(window - 1, -1))[0]
            return found

        most = max(_LOGITS // config.vocab_size, 1)
        hidden = self.model(layout.ids, layout.positions, attend, layout.wanted)
        told = (
            [hidden.new_empty(3, 0, dtype=torch.float32)]
            if not len(hidden)
            else [
                tell(self._allowed(self.model.logits(hidden[part]), layout.open[part]), layout.forced[part])
                for part in (slice(at, at + most) for at in range(0, len(hidden), most))
            ]
        )
        return hidden, told[0] if len(told) == 1 else torch.cat(told, dim=-1)

    def _allowed(self, logits: Tensor, unending: Tensor) -> Tensor:
        """Logits [N, V], overwritten, without the mask token and, in the rows `unending` [N], without ends."""
        ends = logits.index_select(1, self._ends).masked_fill_(unending[:, None] > 0, LOWEST)
        logits.index_copy_(1, self._ends, ends)
        mask = self.model.config.diffusion.mask_token_id
        if mask >= 0:
            logits.select(1, mask).fill_(LOWEST)
        return logits

    def _size(self, pieces: Sequence[Piece]) -> Size:
        rows, read = sum(len(piece.ids) for piece in pieces), sum(len(piece.read) for piece in pieces)
        if not self._tiled:
            pages = max(-(-(piece.stop + piece.behind) // self.pool.size) for piece in pieces)
            return Size(rows, len(pieces), read, pages)
        rows, most = next(
            ((each, most) for each, most in RECORDED if each >= rows and most >= len(pieces)), (rows, len(pieces))
        )
        return Size(rows, most, read if rows > RECORDED[-1][0] else rows, self._pages, self._tiles(rows, most))

    def _tiles(self, rows: int, pieces: int) -> int:
        return -(-rows * self._groups // TILE) + pieces

    def _recording(self, size: Size) -> Recording | None:
        if (size.rows, size.pieces) not in RECORDED:
            return None
        if size not in self._recorded:
            try:
                self._recorded[size] = Recording(self, size)
            except Exception as error:  # noqa: BLE001  (what a driver cannot record runs unrecorded)
                LOG.warning("steps of %d rows are not recorded, and slower: %r", size.rows, error)
                self._recorded[size] = None
        return self._recorded[size]


class Recording:
    """A step of one size, recorded on CUDA: `host` is filled, then the call replays it."""

    def __init__(self, step: Step, size: Size) -> None:
        pinned = torch.zeros(sum(size.parts), dtype=torch.int32).pin_memory()
        self.host = Layout(size, pinned.numpy())
        self.host.slots.fill(step.pool.spare)
        self.host.tiles[0], self.host.tiles_read[0] = -1, -1
        self._pinned = pinned
        self.here = layout = Layout(size, pinned.to(step.device))
        aside = torch.cuda.Stream(step.device)
        aside.wait_stream(torch.cuda.current_stream(step.device))
        with torch.cuda.stream(aside):
            for _ in range(2):
                step.compute(layout)
        torch.cuda.current_stream(step.device).wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, pool=step.memory):
            self._found = step.compute(layout)

    def __call__(self) -> tuple[Tensor, Tensor]:
        """See `Step.compute`; the next call overwrites it."""
        self.here.array.copy_(self._pinned, non_blocking=True)
        self.graph.replay()
        return self._found
