"""One tensor with the keys and values of many requests, each a contiguous span of it.

A step on the device finds a request by a number, the start of its span, instead of by an address: so the shape of a
step and the addresses that it reads stay the same while requests come and go. Spans begin and end at pages of 256
tokens, which flash-attn reads through block tables.

The prefix cache keeps pages of its own. Its pages are small (16 tokens: two contexts part anywhere), the last one is
filled up in place, and a page that is shared in part is copied; kernels want pages of 128 or 256 tokens that one
request owns. A request's pages are copied into its span once, and behind a keystroke not even that, as the span of the
answer before is used again: a block table into the cache itself would save nothing that is left.
"""

from __future__ import annotations

import weakref
from typing import Final

import torch
from torch import Tensor

from calomel.engine.buffer import KeyValueBuffer
from calomel.engine.config import ModelConfig

PAGE: Final = 256
"""Tokens; flash-attn 2 reads pages of a multiple of it."""


class Arena:
    """Room for the keys and values of `tokens` tokens, rounded up to pages, and a page that nobody reads.

    Attributes:
        keys: [layers, tokens + PAGE, Hkv, D]; `values` likewise. Without what is not a number, from the start: a masked
            key has no weight, and no weight times that is not a number either.
        unread: a row that is written and never read.
    """

    def __init__(self, config: ModelConfig, tokens: int, *, dtype: torch.dtype, device: torch.device) -> None:
        self.config = config
        self.unread = tokens + -tokens % PAGE
        shape = (2, config.num_hidden_layers, self.unread + PAGE, config.num_key_value_heads, config.head_dim)
        self.keys: Tensor
        self.values: Tensor
        self.keys, self.values = torch.zeros(shape, dtype=dtype, device=device)
        # (start, stop) of what nobody has, in order, no two of them neighbours.
        self._free = [(0, self.unread)]

    @property
    def free(self) -> int:
        """Tokens that there is room for, though perhaps not in one span."""
        return sum(stop - start for start, stop in self._free)

    def take(self, capacity: int) -> ArenaBuffer | None:
        """A buffer with room for `capacity` tokens; None where no span is long enough."""
        start = self.claim(capacity)
        return None if start is None else ArenaBuffer(self, start, capacity + -capacity % PAGE)

    def claim(self, capacity: int) -> int | None:
        """The start of a span of `capacity` tokens, rounded up to pages; None where none is long enough."""
        size = max(PAGE, capacity + -capacity % PAGE)
        for index, (start, stop) in enumerate(self._free):
            if stop - start >= size:
                self._free[index : index + 1] = [(start + size, stop)] if stop - start > size else []
                return start
        return None

    def release(self, start: int, stop: int) -> None:
        """Give back a span."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted([*self._free, (start, stop)]):
            if merged and merged[-1][1] == first:
                merged[-1] = (merged[-1][0], last)
            else:
                merged.append((first, last))
        self._free = merged


class ArenaBuffer(KeyValueBuffer):
    """A request's buffer that is a span of an arena, given back when nobody holds the buffer any more.

    Attributes:
        start: the row of the arena in which its first token is; None once it has outgrown the arena.
    """

    __slots__ = ("__weakref__", "_arena", "_giving_back", "start")

    start: int | None
    _giving_back: weakref.finalize[[int, int], ArenaBuffer]

    def __init__(self, arena: Arena, start: int, capacity: int) -> None:
        super().__init__(arena.config, 0, dtype=arena.keys.dtype, device=arena.keys.device)
        self._arena = arena
        self._move(start, max(PAGE, capacity))

    def reserve(self, capacity: int) -> None:
        """Make room for `capacity` tokens; what is committed is kept. Outside of the arena where it has none."""
        if capacity <= self.capacity:
            return
        start = None if self.start is None else self._arena.claim(capacity)
        if start is None:
            super().reserve(capacity)
            self._giving_back()
            self.start = None
            return
        keys, values, giving_back = self.keys, self.values, self._giving_back
        self._move(start, capacity + -capacity % PAGE)
        self.keys[:, : self.length] = keys[:, : self.length]
        self.values[:, : self.length] = values[:, : self.length]
        giving_back()

    def _move(self, start: int, capacity: int) -> None:
        self.start = start
        self.keys = self._arena.keys[:, start : start + capacity]
        self.values = self._arena.values[:, start : start + capacity]
        self._giving_back = weakref.finalize(self, self._arena.release, start, start + capacity)
        self._giving_back.atexit = False
