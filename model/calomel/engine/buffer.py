"""The keys and values of one request, contiguous, in the order of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor

from calomel.engine.beginning import common_beginning
from calomel.engine.config import ModelConfig

if TYPE_CHECKING:
    from calomel.engine.cache import Node

# Tokens: so many keystrokes find room in the buffer of the answer before.
_SLACK: Final = 128


class KeyValueBuffer:
    """Room for the keys and values of a request: what it reads from the prefix cache, once, and what it computes.

    Attributes:
        keys: [layers, capacity, Hkv, D]; `values` likewise.
        length: so many leading tokens are committed; what lies behind is room, or the scratch of a canvas.
        tokens: of a buffer that no request uses, the tokens that it still holds.
        pages: the whole pages of the prefix cache that its last request had of them, if they are still there.
    """

    __slots__ = ("keys", "length", "pages", "tokens", "values")

    keys: Tensor
    values: Tensor
    length: int
    tokens: Sequence[int]
    pages: Sequence[Node]

    def __init__(self, config: ModelConfig, capacity: int, *, dtype: torch.dtype, device: torch.device) -> None:
        shape = (2, config.num_hidden_layers, capacity, config.num_key_value_heads, config.head_dim)
        self.keys, self.values = torch.empty(shape, dtype=dtype, device=device)
        self.length = 0
        self.tokens = ()
        self.pages = ()

    @property
    def capacity(self) -> int:
        """The number of tokens that there is room for."""
        return self.keys.shape[1]

    def reserve(self, capacity: int) -> None:
        """Make room for `capacity` tokens; what is committed is kept. Grows by an eighth at least, so rarely."""
        if capacity <= self.capacity:
            return
        layers, old, heads, width = self.keys.shape
        grown = self.keys.new_empty((2, layers, max(capacity + _SLACK, old * 9 // 8), heads, width))
        grown[0, :, : self.length] = self.keys[:, : self.length]
        grown[1, :, : self.length] = self.values[:, : self.length]
        self.keys, self.values = grown

    def common(self, tokens: Sequence[int]) -> int:
        """How many tokens at the beginning of `tokens` the unused buffer still holds."""
        return common_beginning(tuple(self.tokens), tuple(tokens))
