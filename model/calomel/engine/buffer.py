"""The keys and values of one request, contiguous, in the order of its tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from calomel.engine.config import ModelConfig


class KeyValueBuffer:
    """Room for the keys and values of a request: what it reads from the prefix cache, once, and what it computes.

    Attributes:
        keys: [layers, capacity, Hkv, D]; `values` likewise.
        length: so many leading tokens are committed; what lies behind is room, or the scratch of a canvas.
    """

    __slots__ = ("keys", "length", "values")

    keys: Tensor
    values: Tensor
    length: int

    def __init__(self, config: ModelConfig, capacity: int, *, dtype: torch.dtype, device: torch.device) -> None:
        shape = (2, config.num_hidden_layers, capacity, config.num_key_value_heads, config.head_dim)
        self.keys, self.values = torch.empty(shape, dtype=dtype, device=device)
        self.length = 0

    @property
    def capacity(self) -> int:
        """The number of tokens that there is room for."""
        return self.keys.shape[1]

    def reserve(self, capacity: int) -> None:
        """Make room for `capacity` tokens; what is committed is kept. Grows by half at least, so rarely."""
        if capacity <= self.capacity:
            return
        layers, old, heads, width = self.keys.shape
        grown = self.keys.new_empty((2, layers, max(capacity, old * 3 // 2), heads, width))
        grown[0, :, : self.length] = self.keys[:, : self.length]
        grown[1, :, : self.length] = self.values[:, : self.length]
        self.keys, self.values = grown
