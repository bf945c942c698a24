"""What a context leaves in each layer, so that it can be cut back to what the next request shares with it.

The caches of transformers forget what a sliding window has left behind, and can't go back then. These keep some more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer

# Tokens behind a sliding window that are kept: a settled edit moves the near window by this much at most.
SLACK: Final = 2048


class _Layer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values of all tokens."""

    def reaches(self, length: int) -> bool:
        """Whether `cut` can go back to the first `length` tokens."""
        return length <= self.get_seq_length()

    def cut(self, length: int) -> None:
        """Forget what is behind the first `length` tokens."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[..., :length, :], self.values[..., :length, :]


class _Window(_Layer):
    """Keys and values of the last tokens.

    `keys` and `values` are those of the window, as the decoder reads them; `kept` [2, 1, H, N, D] goes further back.
    """

    is_sliding = True

    def __init__(self, window: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._before = window - 1
        self._length = 0
        self._kept: Tensor | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append, and return what the appended tokens see."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        added = torch.stack((key_states, value_states))
        kept = added if self._kept is None else torch.cat((self._kept, added), dim=-2)
        count = key_states.shape[-2]
        self._length += count
        seen = kept[..., max(0, kept.shape[-2] - self._before - count) :, :]
        self._keep(kept[..., max(0, kept.shape[-2] - self._before - SLACK) :, :])
        return seen[0], seen[1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length and offset of what `query_length` further tokens see."""
        seen = min(self._length, self._before)
        return seen + query_length, self._length - seen

    def get_seq_length(self) -> int:
        """Tokens that were appended."""
        return self._length

    def get_max_length(self) -> int:
        """The window."""
        return self._before + 1

    def reaches(self, length: int) -> bool:
        """Whether `cut` can go back to the first `length` tokens."""
        start = self._length - (0 if self._kept is None else self._kept.shape[-2])
        return length <= self._length and start <= max(0, length - self._before)

    def cut(self, length: int) -> None:
        """Forget what is behind the first `length` tokens."""
        if self._kept is not None:
            kept = self._kept[..., : self._kept.shape[-2] - (self._length - length), :]
            self._length = length
            self._keep(kept)

    def _keep(self, kept: Tensor) -> None:
        self._kept = kept
        self.keys, self.values = kept[..., max(0, kept.shape[-2] - self._before) :, :]


def _layer(window: int | None) -> _Layer:
    return _Layer() if window is None else _Window(window)  # type: ignore[no-untyped-call]


class Context:
    """One encoded context.

    Attributes:
        cache: as the model's encoder fills it and its decoder reads it.
        length: tokens that are encoded.
        version: another one whenever its tokens have changed.
    """

    def __init__(self, windows: Sequence[int | None]) -> None:
        self._layers = [_layer(window) for window in windows]
        self.cache = Cache(layers=list(self._layers))
        self.length = 0
        self.version = 0

    def held(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values [1, H, S, D] of one layer, as the decoder reads them."""
        keys, values = self._layers[layer].keys, self._layers[layer].values
        if keys is None or values is None:
            raise ValueError("the context is empty")
        return keys, values

    def grown(self, count: int) -> None:
        """The encoder has appended `count` tokens."""
        self.length += count
        self.version += 1

    def reaches(self, length: int) -> bool:
        """Whether it can go back to its first `length` tokens."""
        return all(layer.reaches(length) for layer in self._layers)

    def cut(self, length: int) -> None:
        """Go back to the first `length` tokens."""
        for layer in self._layers:
            layer.cut(length)
        self.length = length
        self.version += 1


class Stack:
    """Several contexts side by side, as the decoder reads them: shorter ones are filled up, and masked there.

    Attributes:
        layers: their `keys` and `values` are [B, H, S, D].
        masks: for each kind of layer [B, 1, 1, S + canvas] bool; None where no context is filled up.
        of: what is stacked, with the version of each.
    """

    is_compileable = False

    def __init__(self, contexts: Sequence[Context], kinds: Sequence[str], canvas: int) -> None:
        self.of = [(context, context.version) for context in contexts]
        self.layers: list[_Held] = []
        self.masks: dict[str, Tensor | None] = {}
        for index, kind in enumerate(kinds):
            held = [context.held(index) for context in contexts]
            self.layers.append(_Held(_padded([keys for keys, _ in held]), _padded([values for _, values in held])))
            if kind not in self.masks:
                self.masks[kind] = _mask([keys for keys, _ in held], canvas)

    def holds(self, contexts: Sequence[Context]) -> bool:
        """Whether it is still the stack of `contexts`."""
        now = [(context, context.version) for context in contexts]
        same = len(now) == len(self.of)
        return same and all(a is b and c == d for (a, c), (b, d) in zip(now, self.of, strict=True))


class _Held:
    """Keys and values of one layer."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys = keys
        self.values = values


def _padded(rows: Sequence[Tensor]) -> Tensor:
    longest = max(row.shape[-2] for row in rows)
    return torch.cat([torch.nn.functional.pad(row, (0, 0, 0, longest - row.shape[-2])) for row in rows])


def _mask(rows: Sequence[Tensor], canvas: int) -> Tensor | None:
    lengths = torch.tensor([row.shape[-2] for row in rows], device=rows[0].device)
    longest = max(row.shape[-2] for row in rows)
    if all(row.shape[-2] == longest for row in rows):
        return None
    places = torch.arange(longest + canvas, device=rows[0].device)
    seen = (places < lengths[:, None]) | (places >= longest)
    return seen[:, None, None].expand(-1, 1, canvas, -1)
