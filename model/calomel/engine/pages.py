"""Pages of keys and values, and the tables that say where those of a request are."""

from __future__ import annotations

import functools
import math
from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch
from torch import Tensor

from calomel.engine.config import ModelConfig

# Pages that lie side by side have room for this share of them behind them.
GROWTH: Final = 4
# Bytes of a processor's cache line, at which rows begin.
_LINE: Final = 64
# Tables whose runs are known.
_TABLES: Final = 256


class Pages:
    """Room for keys and values: `keys`, `values`, one [Hkv, (pages + 1) * size, D] for each layer.

    All rows of a head lie together, so that pages which follow one another are one slice of it. The last page is spare:
    what belongs to no request is written there, and nobody reads it.
    """

    def __init__(self, config: ModelConfig, *, pages: int, size: int, dtype: torch.dtype, device: torch.device) -> None:
        rows = (pages + 1) * size
        shape = (2, config.num_hidden_layers, config.num_key_value_heads, rows, config.head_dim)
        self._held = _zeros(shape, dtype, device)
        self.keys, self.values = (list(part.unbind()) for part in self._held)
        self.size = size
        self.count = pages
        self.spare = pages * size  # the row of what belongs to no request
        self.free = list(range(pages))  # in ascending order

    def take(self, count: int, after: int) -> list[int]:
        """`count` of the free pages: those that follow page `after`, then others in runs, with room to grow."""
        taken: list[int] = []
        at = bisect_left(self.free, after + 1)
        while len(taken) < count:
            if taken or at == len(self.free) or self.free[at] != after + 1:
                at = self._middle(count - len(taken))
            stop = at + 1
            last = min(len(self.free), at + count - len(taken))
            while stop < last and self.free[stop] == self.free[at] + stop - at:
                stop += 1
            # What is read beyond the last token of a page is hidden, but has to be numbers.
            self._held[1, :, :, self.free[at] * self.size : (self.free[stop - 1] + 1) * self.size] = 0
            taken += self.free[at:stop]
            del self.free[at:stop]
        return taken

    def give(self, page: int) -> None:
        """Take back a page."""
        insort(self.free, page)

    def follows(self, after: int, count: int) -> bool:
        """Whether the `count` pages that follow page `after` are free."""
        at = bisect_left(self.free, after + 1)
        return self.free[at : at + count] == list(range(after + 1, after + 1 + count))

    def longest(self) -> tuple[int, int]:
        """Where in `free` its longest run of neighbours begins and ends."""
        starts = [at for at, page in enumerate(self.free) if not at or self.free[at - 1] != page - 1]
        runs = zip(starts, [*starts[1:], len(self.free)], strict=True)
        return max(runs, key=lambda run: run[1] - run[0], default=(0, 0))

    def _middle(self, count: int) -> int:
        """Where in its longest run `count` pages have most room to grow, and leave some to the pages before the run."""
        start, stop = self.longest()
        return max(start, min((start + stop) // 2, stop - count - count // GROWTH))

    def move(self, runs: Iterable[slice], page: int) -> None:
        """Copy `runs` of rows to `page` and those that follow it."""
        row = page * self.size
        for run in runs:
            self._held[..., row : row + run.stop - run.start, :] = self._held[..., run, :]
            row += run.stop - run.start


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """PyTorch would write them: on a CPU, memory that was never used is zero and takes no room."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    size = math.prod(shape) * dtype.itemsize
    held = np.zeros(size + _LINE, dtype=np.uint8)
    start = -held.ctypes.data % _LINE
    return torch.from_numpy(held[start : start + size]).view(dtype).view(shape)


@dataclass(slots=True, eq=False)
class PageTable:
    """Where the keys and values of a request are: token i is in row i % size of page `pages[i // size]`.

    Attributes:
        pool: has the pages.
        pages: in the order of their tokens.
        length: how many leading tokens are committed; the rest is room, or the scratch space of a canvas.
    """

    pool: Pages
    pages: list[int] = field(default_factory=list)
    length: int = 0
    _line: np.ndarray | None = None

    def line(self) -> np.ndarray:
        """`pages` as int32 [N]."""
        if self._line is None:
            self._line = np.array(self.pages, dtype=np.int32)
        return self._line

    def runs(self, start: int, stop: int) -> list[slice]:
        """The rows of the pool that hold the tokens from `start` to `stop`, in order: few slices."""
        return runs_of(self.line(), self.pool.size, start, stop)

    def moved(self) -> None:
        """`pages` has changed."""
        self._line = None


def runs_of(pages: np.ndarray, size: int, start: int, stop: int) -> list[slice]:
    """The rows that hold the tokens from `start` to `stop` of a table [N] int32 of pages of `size` tokens."""
    found = []
    for first, row, count in _joined(pages[: -(-stop // size)].tobytes(), size):
        low, high = max(start, first), min(stop, first + count)
        if low < high:
            found.append(slice(row + low - first, row + high - first))
    return found


@functools.lru_cache(_TABLES)
def _joined(table: bytes, size: int) -> list[tuple[int, int, int]]:
    """Runs of neighbouring pages: first token, its row, and the number of tokens."""
    joined = list[tuple[int, int, int]]()
    for place, page in enumerate(np.frombuffer(table, dtype=np.int32).tolist()):
        if joined and sum(joined[-1][1:]) == page * size:
            joined[-1] = (*joined[-1][:2], joined[-1][2] + size)
        else:
            joined.append((place * size, page * size, size))
    return joined
