"""How the rows of a fixed shape attend to spans of an arena: which keys they see is data.

Every request has the same number of rows, the last of which ends where the request ends; what is too many lies before
its first uncommitted token. Such a row sees what a causal row in its place would see, so that it is never without a
key, and what it computes is written where nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.config import ModelConfig
from calomel.engine.resident.arena import Arena
from calomel.engine.resident.shape import StepShape, most_keys


@dataclass(frozen=True, slots=True)
class Places:
    """Where the rows of a step stand; B requests of R rows.

    Attributes:
        start: [B] row of the arena with a request's first token.
        end: [B] behind the position of its last row.
        canvas: [B] the position of the canvas' first row.
        positions: [B, R], not below 0.
        write: [B * R] rows of the arena that the keys and values go to.
    """

    start: Tensor
    end: Tensor
    canvas: Tensor
    positions: Tensor
    write: Tensor


class ArenaAttention:
    """The `Attend` of one step: writes the keys and values of all rows, then attends by scaled dot products.

    The keys that a layer may see are gathered: of a layer with a window, those of the window; else `shape.reach`.
    """

    def __init__(self, config: ModelConfig, arena: Arena, shape: StepShape, places: Places) -> None:
        self._config = config
        self._arena = arena
        self._shape = shape
        self._places = places
        self._seen: dict[int | None, tuple[Tensor, Tensor]] = {}

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [B * R, Hq, D], k and v [B * R, Hkv, D] to [B * R, Hq, D]."""
        keys, values = self._arena.keys[layer], self._arena.values[layer]
        keys.index_copy_(0, self._places.write, k)
        values.index_copy_(0, self._places.write, v)
        window = self._config.window(layer)
        if window not in self._seen:
            self._seen[window] = self._see(window, q)
        index, mask = self._seen[window]
        batch, groups = self._shape.canvases, q.shape[1] // k.shape[1]
        shape = (batch, -1, k.shape[1], k.shape[2])
        # The query heads of a group become rows of their key head: no key is repeated.
        rows = q.view(batch, -1, k.shape[1], groups, k.shape[2]).permute(0, 2, 3, 1, 4).flatten(2, 3)
        keys, values = (part.index_select(0, index).view(shape).transpose(1, 2) for part in (keys, values))
        out = F.scaled_dot_product_attention(rows, keys, values, mask)  # [B, Hkv, G * R, D]
        ordered: Tensor = out.unflatten(2, (groups, -1)).permute(0, 3, 1, 2, 4).reshape(q.shape)
        return ordered

    def _see(self, window: int | None, q: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of the arena [B * K] that a layer gathers, and what is added to the scores [B, 1, G * R, K]."""
        places, most = self._places, self._shape.reach or most_keys(self._config)
        count = most if window is None else min(most, window + self._shape.width)
        first = (places.end - count).clamp(min=0)
        key = first[:, None] + torch.arange(count, device=q.device)  # [B, K]
        index = (places.start[:, None] + key).clamp(max=self._arena.unread).flatten()
        query, key, canvas = places.positions[:, :, None], key[:, None], places.canvas[:, None, None]
        seen = query >= key
        if window is not None:
            seen = seen & (query - key < window)
        # What lies behind the window of a canvas row stays unseen, but for the rows of its own canvas.
        on_canvas = (query >= canvas) & (key >= canvas) & (key < places.end[:, None, None])
        seen = seen | on_canvas
        mask = torch.zeros(seen.shape, dtype=q.dtype, device=q.device).masked_fill(~seen, -torch.inf)
        return index, mask.repeat(1, q.shape[1] // self._config.num_key_value_heads, 1)[:, None]


Attending = Callable[[ModelConfig, Arena, StepShape, Places], Callable[[int, Tensor, Tensor, Tensor], Tensor]]
"""Makes the `Attend` of one step."""
