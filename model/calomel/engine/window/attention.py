"""How the rows of a window attend: to all of it, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.flash import FlashVarlen


@dataclass(slots=True, eq=False)
class Kept:
    """The keys and values of a whole window, as a block's first forward left them: [S, Hkv, D] of every layer."""

    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive rows of one request in a forward.

    Attributes:
        ids: token ids.
        first: position of the first row in the request's window.
        read: rows whose logits are wanted.
        kept: filled by a forward of the whole window; the rows of a later one take their places in it.
        whole: the rows are the window.
    """

    ids: Sequence[int]
    first: int = 0
    read: Sequence[int] = ()
    kept: Kept | None = None
    whole: bool = True


class WindowAttention:
    """The `Attend` of one forward: spans side by side, without padding, each sees its own window alone."""

    def __init__(self, spans: Sequence[Span], flash: FlashVarlen | None = None) -> None:
        self._spans = spans
        self._flash = flash
        self._ends: tuple[Tensor, int] | None = None

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [T, Hq, D], k and v [T, Hkv, D] to [T, Hq, D]."""
        sizes = [len(span.ids) for span in self._spans]
        pairs = zip(self._spans, k.split(sizes), v.split(sizes), strict=True)
        seen = [_seen(span, layer, keys, values) for span, keys, values in pairs]
        if self._flash is not None and all(span.whole for span in self._spans):
            return self._attend_flash(self._flash, q, k, v)
        outs = [_attend(rows, *both) for rows, both in zip(q.split(sizes), seen, strict=True)]
        return outs[0] if len(outs) == 1 else torch.cat(outs)

    def _attend_flash(self, flash: FlashVarlen, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if self._ends is None:
            sizes = [0, *(len(span.ids) for span in self._spans)]
            ends = torch.tensor(sizes, dtype=torch.int32, device=q.device).cumsum(0, dtype=torch.int32)
            self._ends = ends, max(sizes)
        ends, longest = self._ends
        return flash(q, k, v, ends, ends, longest, longest, causal=False)


def _seen(span: Span, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """What the rows of `span` attend to; `span.kept` is brought up to date."""
    if span.kept is None:
        return keys, values
    if span.whole:
        # A copy: the tensors of the forward are of all requests, and would be kept as a whole.
        span.kept.keys.append(keys.clone())
        span.kept.values.append(values.clone())
        return keys, values
    stop = span.first + len(span.ids)
    span.kept.keys[layer][span.first : stop] = keys
    span.kept.values[layer][span.first : stop] = values
    return span.kept.keys[layer], span.kept.values[layer]


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Q [R, Hq, D], k and v [S, Hkv, D] to [R, Hq, D]."""
    rows, heads, width = q.shape
    groups = heads // k.shape[1]
    # The query heads of a group become rows of their key head: no key is repeated.
    folded = q.view(rows, -1, groups, width).permute(1, 2, 0, 3).reshape(1, -1, groups * rows, width)
    out = F.scaled_dot_product_attention(folded, k.transpose(0, 1)[None], v.transpose(0, 1)[None])
    return out.view(-1, groups, rows, width).permute(2, 0, 1, 3).reshape(rows, heads, width)
