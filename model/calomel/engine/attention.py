"""How the rows of one flat forward attend: the one place that knows about causal and canvas rows.

A forward concatenates segments. Each is a run of consecutive positions of one request, which attends to the keys and
values that its request already has and to itself: causally (context, verification), or in both directions (canvas).
Where the checkpoint reads its context in blocks, every segment begins at a block and attends to itself block by block.
The scaled-dot-product backend is the reference; on CUDA, flash-attn's varlen kernel is used when there is one, but for
segments of several blocks, whose mask it has no form of.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.buffer import KeyValueBuffer
from calomel.engine.config import ModelConfig
from calomel.engine.flash import FlashVarlen

# Rows of the largest canvases; a mask of a prefill chunk has megabytes.
_REMEMBERED_ROWS: Final = 72


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows start:stop of a flat forward, at positions context, context + 1, ... of one request.

    Attributes:
        start: first row; `stop` is behind the last.
        buffer: the request's keys and values; the rows' own are written behind the first `context` of them. Those of
            a canvas are scratch: they lie behind what the request has committed.
        context: so many tokens of the request come before the first row, all of them visible to every row.
        causal: a row sees the rows before it and itself; else all rows of the segment. With blocks, both see the rows
            up to the end of their own block.
        behind: so many keys behind the rows' own, which the buffer still holds, are visible to every row. Such a
            segment is a part of one block.
    """

    start: int
    stop: int
    buffer: KeyValueBuffer
    context: int
    causal: bool
    behind: int = 0

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start


class SegmentAttention:
    """The `Attend` of one forward.

    With a sliding window w, a row sees the keys whose position is less than w before its own; a canvas row sees all
    rows of its canvas besides.
    """

    def __init__(self, config: ModelConfig, segments: Sequence[Segment], flash: FlashVarlen | None = None) -> None:
        self._config = config
        self._segments = segments
        self._flash = flash
        self._masks: dict[tuple[int, int | None], Tensor | None] = {}
        self._lengths: dict[bool, tuple[Tensor, Tensor, int, int]] = {}

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [T, Hq, D], k and v [T, Hkv, D] to [T, Hq, D]."""
        window = self._config.window(layer)
        for segment in self._segments:
            if segment.causal:
                _write(segment, layer, k, v)
        if self._flash and all(self._plain(segment, window) for segment in self._segments):
            return self._attend_flash(self._flash, layer, q, k, v, window)
        outs = []
        for index, segment in enumerate(self._segments):
            if not segment.causal:  # in turn: candidate canvases of one request share the scratch space
                _write(segment, layer, k, v)
            outs.append(self._attend_sdpa(index, segment, layer, q[segment.start : segment.stop], window))
        return outs[0] if len(outs) == 1 else torch.cat(outs)

    def _plain(self, segment: Segment, window: int | None) -> bool:
        """Whether flash-attn can tell what `segment` sees: it has no blocks, and no window that spares a canvas."""
        block = self._config.diffusion.block
        if block > 1:
            return segment.rows <= block and not segment.behind
        return segment.causal or window is None or segment.rows <= window

    def _attend_sdpa(self, index: int, segment: Segment, layer: int, q: Tensor, window: int | None) -> Tensor:
        rows, heads, width = q.shape
        stop = segment.context + rows + segment.behind
        first = 0 if window is None else max(0, segment.context - window + 1)
        keys = segment.buffer.keys[layer, first:stop].transpose(0, 1)  # [Hkv, S, D]
        values = segment.buffer.values[layer, first:stop].transpose(0, 1)
        # The query heads of a group become rows of their key head: no key is repeated.
        groups = heads // keys.shape[0]
        folded = q.view(rows, -1, groups, width).permute(1, 2, 0, 3).reshape(1, -1, groups * rows, width)
        if (index, window) not in self._masks:
            self._masks[index, window] = segment_mask(segment, first, window, groups, q, self._config.diffusion.block)
        out = F.scaled_dot_product_attention(folded, keys[None], values[None], self._masks[index, window])
        return out.view(-1, groups, rows, width).permute(2, 0, 1, 3).reshape(rows, heads, width)

    def _attend_flash(
        self, flash: FlashVarlen, layer: int, q: Tensor, k: Tensor, v: Tensor, window: int | None
    ) -> Tensor:
        out = torch.empty_like(q)
        for causal in (True, False):
            segments = [segment for segment in self._segments if segment.causal == causal]
            if not segments:
                continue
            keys, values = _flat_keys(segments, layer, k, v)
            if causal not in self._lengths:
                self._lengths[causal] = _cumulative(segments, q.device)
            ends_q, ends_k, longest_q, longest_k = self._lengths[causal]
            past = -1 if window is None else window - 1
            ordered = causal and self._config.diffusion.block == 1
            result = flash(
                torch.cat([q[s.start : s.stop] for s in segments]),
                keys,
                values,
                ends_q,
                ends_k,
                longest_q,
                longest_k,
                causal=ordered,
                window_size=(past, 0 if ordered else -1),
            )
            for segment, part in zip(segments, torch.split(result, [s.rows for s in segments]), strict=True):
                out[segment.start : segment.stop] = part
        return out


def segment_mask(
    segment: Segment, first: int, window: int | None, groups: int, q: Tensor, block: int = 1
) -> Tensor | None:
    """What to add to the scores [groups * rows, S] of `segment` over keys from position `first`; None for nothing."""
    rows, stop = segment.rows, segment.context + segment.rows
    windowed = window is not None and stop > window
    open_rows = rows <= block if block > 1 else not segment.causal
    if not windowed and (rows == 1 or open_rows):
        return None
    if rows == 1:  # `first` already cut the keys to the window
        return None
    make = _remembered_mask if rows <= _REMEMBERED_ROWS else _mask
    reach = block if block > 1 else 1 if segment.causal else rows
    return make(rows, segment.context - first, window if windowed else None, reach, groups, q.dtype, q.device)


def _mask(
    rows: int,
    past: int,
    window: int | None,
    reach: int,
    groups: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """The mask of `rows` rows behind `past` keys: it depends on nothing else, least of all on where they stand.

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


# Behind a context that fills the window, canvases of one length have one mask, whatever the request.
_remembered_mask = functools.lru_cache(maxsize=64)(_mask)


def _flat_keys(segments: Sequence[Segment], layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """All keys and values that `segments` see, one behind the other: [S, Hkv, D] each; one segment's are not copied."""
    if len(segments) == 1:
        (segment,) = segments
        _write(segment, layer, k, v)
        stop = segment.context + segment.rows
        return segment.buffer.keys[layer, :stop], segment.buffer.values[layer, :stop]
    keys = [part for s in segments for part in (s.buffer.keys[layer, : s.context], k[s.start : s.stop])]
    values = [part for s in segments for part in (s.buffer.values[layer, : s.context], v[s.start : s.stop])]
    return torch.cat(keys), torch.cat(values)


def _write(segment: Segment, layer: int, k: Tensor, v: Tensor) -> None:
    stop = segment.context + segment.rows
    segment.buffer.keys[layer, segment.context : stop] = k[segment.start : segment.stop]
    segment.buffer.values[layer, segment.context : stop] = v[segment.start : segment.stop]


def _cumulative(segments: Sequence[Segment], device: torch.device) -> tuple[Tensor, Tensor, int, int]:
    """flash-attn's cu_seqlens_q, cu_seqlens_k [segments + 1] int32, max_seqlen_q and max_seqlen_k."""
    rows = [segment.rows for segment in segments]
    keys = [segment.context + segment.rows for segment in segments]
    ends = [
        torch.tensor([0, *sizes], dtype=torch.int32, device=device).cumsum(0, dtype=torch.int32)
        for sizes in (rows, keys)
    ]
    return ends[0], ends[1], max(rows), max(keys)
