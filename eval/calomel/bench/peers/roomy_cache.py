"""A cache for `transformers` that copies nothing: rows are written into room that is there, and read as views.

Its own `DynamicCache` copies all keys and values for every token, which takes half of a step at 8,192 tokens, and its
sliding layers can not be cut back behind their window. This one keeps every row, shows sliding layers their window
alone, and can be cut back anywhere. It is what the model class asks of a cache layer, and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from torch import Tensor

# Rows that are added at a time when there is no room left.
_MORE_ROOM: Final = 4096


class RoomyLayer:
    """Keys and values of one layer: `[1, heads, positions, head_dim]`.

    Args:
        window: how many positions a query sees, its own included; None for all.
    """

    is_compileable = False
    is_croppable = True
    is_initialized = True

    def __init__(self, window: int | None) -> None:
        self.is_sliding = window is not None
        self._window = window
        self._rows: tuple[Tensor, Tensor] | None = None
        self._length = 0

    def update(self, keys: Tensor, values: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append, and return what the new queries may see."""
        count = keys.shape[-2]
        rows = self._room_for(keys, self._length + count)
        for kept, fresh in zip(rows, (keys, values), strict=True):
            kept[:, :, self._length : self._length + count] = fresh
        visible, first = self.get_mask_sizes(count)
        self._length += count
        return rows[0][:, :, first : first + visible], rows[1][:, :, first : first + visible]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many positions the next `query_length` queries see, and the first of them."""
        first = 0 if self._window is None else max(0, self._length - self._window + 1)
        return self._length + query_length - first, first

    def get_seq_length(self) -> int:
        """Positions so far."""
        return self._length

    def get_max_length(self) -> int:
        """No bound, in the words of `transformers`."""
        return -1

    def crop(self, tokens_to_remove: int) -> None:
        """Forget the last `-tokens_to_remove` positions."""
        self._length += tokens_to_remove

    def _room_for(self, like: Tensor, length: int) -> tuple[Tensor, Tensor]:
        if self._rows is None or self._rows[0].shape[-2] < length:
            shape = (*like.shape[:2], length + _MORE_ROOM, like.shape[-1])
            larger = like.new_zeros(shape), like.new_zeros(shape)
            for old, new in zip(self._rows or (), larger, strict=False):
                new[:, :, : self._length] = old[:, :, : self._length]
            self._rows = larger
        return self._rows


def roomy_layers(layer_types: Sequence[str], window: int | None) -> list[RoomyLayer]:
    """A layer for each of `layer_types`, in the words of `config.json`."""
    return [RoomyLayer(window if kind == "sliding_attention" else None) for kind in layer_types]
