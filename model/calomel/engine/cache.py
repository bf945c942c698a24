"""The prefix cache: keys and values of context tokens, in pages, looked up token by token.

A radix tree whose nodes are pages: a node holds up to `page_size` token ids and the page with their keys and values;
its path from the root spells the tokens before it. Contexts share the pages of their common prefix; where they diverge
within a page, the common rows are copied and each continues in a page of its own. A page that lacks only the newest
tokens is filled up in place: the rows that others read never change.

If a checkpoint reads its context in blocks, a token's keys depend on all of its block: only whole blocks are kept and
found, and a page holds a whole number of them.

A request pins the last of its pages until it ends. Only a page without successors and pins is ever evicted, the least
recently used first, so the pages before a pinned one stay too, and a request pins one page, however long its context.
Not thread-safe: the engine's thread owns it.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from calomel.engine.config import ModelConfig
from calomel.engine.errors import CacheFullError, InvalidRequestError

# Tokens of room in a buffer beyond its answer, for the next keystrokes.
_SLACK: Final = 128


def common_beginning(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """How many tokens `one` and `other` have in common at their beginning.

    Comparing slices is far faster than comparing token by token. The first slices are short: most contexts that differ
    do so at once, and one rendered a keystroke ago differs at the end.
    """
    low, high = 0, min(len(one), len(other))
    step = 64
    while low < high:
        stop = min(low + step, high)
        if one[low:stop] != other[low:stop]:
            break
        low, step = stop, step * 8
    else:
        return low
    high = stop - 1
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class Encoded(Protocol):
    """What a network has encoded of the beginning of a sequence."""

    @property
    def length(self) -> int:
        """Tokens that are encoded."""

    @property
    def capacity(self) -> int:
        """Tokens that there is room for."""

    def reaches(self, length: int) -> bool:
        """Whether it can go back to its first `length` tokens; a sliding window forgets what is far behind."""

    def cut(self, length: int) -> None:
        """Go back to the first `length` tokens."""


E = TypeVar("E", bound=Encoded)


class Spares(Generic[E]):
    """Encoded contexts that no request uses, kept for the next keystroke in the same document.

    Args:
        most: tokens that they may have room for, together; the most recently used one stays whatever its size.
        block: only whole blocks of this many tokens are found again.
    """

    def __init__(self, most: int, *, block: int = 1) -> None:
        self._most = most
        self._block = block
        # Least recently used first.
        self._kept: list[tuple[tuple[int, ...], E]] = []

    def put(self, tokens: Sequence[int], encoded: E) -> None:
        """Keep `encoded`, which holds `tokens`."""
        self._kept.append((tuple(tokens), encoded))

    def take(self, wanted: Sequence[int]) -> E | None:
        """The one that shares most of `wanted`, cut to the shared part; None if it is better to start afresh.

        After a keystroke it is that of the previous answer: nothing of the context has to be copied. One that shares
        little belongs to another context, which will want it back: it is not taken.
        """
        common = [self._usable(tokens, encoded, tuple(wanted)) for tokens, encoded in self._kept]
        sizes = [(count, encoded.capacity) for count, (_, encoded) in zip(common, self._kept, strict=True)]
        chosen = max(range(len(sizes)), key=sizes.__getitem__, default=None)
        if chosen is None or common[chosen] * 2 < len(wanted):
            return None
        encoded = self._kept.pop(chosen)[1]
        encoded.cut(common[chosen])
        return encoded

    def trim(self, beside: int = 0, least: int = 1) -> None:
        """Drop all but `least`, the least recently used first, until they fit beside `beside` tokens in use."""
        while len(self._kept) > least and beside + sum(encoded.capacity for _, encoded in self._kept) > self._most:
            self._kept.pop(0)

    def _usable(self, tokens: tuple[int, ...], encoded: E, wanted: tuple[int, ...]) -> int:
        common = common_beginning(tokens, wanted)
        common -= common % self._block
        return common if encoded.reaches(common) else 0


class KeyValueBuffer:
    """Room for the keys and values of a request: what it reads from the prefix cache, once, and what it computes.

    Attributes:
        keys: [layers, Hkv, capacity, D], so that all keys of a head lie together; `values` likewise.
        length: how many leading tokens are committed; the rest is room, or the scratch space of a canvas.
    """

    __slots__ = ("keys", "length", "values")

    keys: Tensor
    values: Tensor
    length: int

    def __init__(self, config: ModelConfig, capacity: int, *, dtype: torch.dtype, device: torch.device) -> None:
        shape = (config.num_hidden_layers, config.num_key_value_heads, capacity, config.head_dim)
        self.keys = torch.empty(shape, dtype=dtype, device=device)
        self.values = torch.empty_like(self.keys)
        self.length = 0

    @property
    def capacity(self) -> int:
        """The number of tokens that there is room for."""
        return self.keys.shape[2]

    def reserve(self, capacity: int) -> None:
        """Make room for `capacity` tokens, keeping what is committed. Grows by at least an eighth, so rarely."""
        if capacity <= self.capacity:
            return
        capacity = max(capacity + _SLACK, self.capacity * 9 // 8)
        # One after the other: a tensor that grows exists twice, which is much for a long context.
        self.keys = self._grown(self.keys, capacity)
        self.values = self._grown(self.values, capacity)

    def _grown(self, old: Tensor, capacity: int) -> Tensor:
        layers, heads, _, width = old.shape
        grown = old.new_empty((layers, heads, capacity, width))
        grown[:, :, : self.length] = old[:, :, : self.length]
        return grown

    def reaches(self, length: int) -> bool:
        """Whether the first `length` tokens are there."""
        return length <= self.length

    def cut(self, length: int) -> None:
        """Go back to the first `length` tokens."""
        self.length = length


Tokens = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Node:
    """A page in the tree: `tokens` (full unless it is a leaf) after those of `parent`, None once it was evicted.

    It is the last page of `pins` requests, and was last used at `used`, unless a page after it was used later.
    """

    tokens: Tokens
    page: int
    parent: Node | None
    children: dict[Tokens, Node] = field(default_factory=dict)
    pins: int = 0
    used: int = 0


@dataclass(slots=True, eq=False)
class Lease:
    """The pages that one request holds: `nodes` cover the first `length` tokens of its context, the last is pinned."""

    nodes: list[Node]
    length: int


class PrefixCache:
    """Pages of keys and values: `keys`, `values` [layers, Hkv, pages, page_size, D]."""

    def __init__(
        self, config: ModelConfig, *, pages: int, page_size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._block = config.diffusion.block
        if page_size % self._block:
            raise InvalidRequestError(f"page_size is {page_size}; it must be a multiple of the block, {self._block}")
        shape = (2, config.num_hidden_layers, config.num_key_value_heads, pages, page_size, config.head_dim)
        self.keys: Tensor
        self.values: Tensor
        self.keys, self.values = torch.empty(shape, dtype=dtype, device=device)
        self.page_size = page_size
        self.pages = pages
        self._root = Node((), -1, None)
        self._free = list(range(pages - 1, -1, -1))  # taken from the end, so pages are contiguous
        self._clock = itertools.count(1)
        # (used, tie, node) of nodes that were evictable when they were pushed; checked again when popped.
        self._idle: list[tuple[int, int, Node]] = []

    @property
    def free_pages(self) -> int:
        """Pages that hold nothing."""
        return len(self._free)

    def acquire(self, tokens: Sequence[int], buffer: KeyValueBuffer) -> Lease:
        """Pin what the cache has of the beginning of `tokens` and copy it, once, to the beginning of `buffer`.

        The first `buffer.length` tokens are there already; afterwards `buffer.length` is that of the lease.
        """
        size, node, start = self.page_size, self._root, 0
        nodes: list[Node] = []
        while (child := node.children.get(tuple(tokens[start : start + size]))) is not None:
            nodes.append(child)
            node, start = child, start + len(child.tokens)
            if len(child.tokens) < size:
                break
        length = start
        if start % size == 0 and start < len(tokens):
            child, common = _closest(node, tuple(tokens[start : start + size]))
            common -= common % self._block
            if child is not None and common:
                nodes.append(child)
                length += common
        lease = Lease(nodes, length)
        if nodes:
            self._pin(nodes[-1])
        self._read(lease, buffer)
        return lease

    def store(self, lease: Lease, tokens: Sequence[int], buffer: KeyValueBuffer) -> None:
        """Make the pages of `lease` cover all of `tokens`, whole blocks, whose keys and values begin `buffer`.

        Raises:
            CacheFullError: all pages are in use; what fitted is kept.
        """
        size = self.page_size
        if len(tokens) <= lease.length:
            return
        if lease.length % size:  # its last page may be shared or be filled up: look again
            last = lease.nodes.pop()
            if lease.nodes:
                self._pin(lease.nodes[-1])
            self._unpin(last)
            lease.length -= lease.length % size
        fresh: list[tuple[int, int]] = []
        try:
            while lease.length < len(tokens):
                wanted = tuple(tokens[lease.length : lease.length + size])
                parent = lease.nodes[-1] if lease.nodes else self._root
                node = self._find(parent, wanted, lease.length, buffer)
                if node is None:
                    node = Node(wanted, self._allocate(), parent)
                    parent.children[wanted] = node
                    if len(wanted) == size:
                        fresh.append((node.page, lease.length))
                    else:
                        self._write(node, 0, lease.length, buffer)
                self._pin(node)
                if lease.nodes:
                    self._unpin(lease.nodes[-1])
                lease.nodes.append(node)
                lease.length += len(wanted)
        finally:
            self._write_full(fresh, buffer)

    def release(self, lease: Lease) -> None:
        """Unpin the pages of a request that ended; their contents stay until the room is needed."""
        if lease.nodes:
            self._unpin(lease.nodes[-1])
        lease.nodes = []
        lease.length = 0

    def _find(self, parent: Node, wanted: Tokens, start: int, buffer: KeyValueBuffer) -> Node | None:
        """The child of `parent` that begins with `wanted`, or that can be filled up to do so."""
        exact = parent.children.get(wanted)
        if exact is not None:
            return exact
        child, common = _closest(parent, wanted)
        if child is None:
            return None
        if common == len(wanted):
            return child
        if common == len(child.tokens):
            self._write(child, common, start, buffer, tokens=wanted)
            return child
        return None

    def _allocate(self) -> int:
        if self._free:
            return self._free.pop()
        while self._idle:
            used, _, node = heapq.heappop(self._idle)
            parent = node.parent
            if parent is None or node.pins or node.children or node.used != used:
                continue
            del parent.children[node.tokens]
            node.parent = None
            # Whoever used a page also used those before it.
            parent.used = max(parent.used, used)
            self._offer(parent)
            return node.page
        raise CacheFullError(
            f"all {self.pages} pages of the prefix cache are in use; try again when a request has ended"
        )

    def _pin(self, node: Node) -> None:
        node.pins += 1
        node.used = next(self._clock)

    def _unpin(self, node: Node) -> None:
        node.pins -= 1
        node.used = next(self._clock)
        self._offer(node)

    def _offer(self, node: Node) -> None:
        """Queue `node` for eviction if nothing needs it."""
        if node is self._root or node.pins or node.children:
            return
        if len(self._idle) > 4 * self.pages + 64:  # drop entries used again since
            self._idle = [(used, tie, old) for used, tie, old in self._idle if old.parent and old.used == used]
            heapq.heapify(self._idle)
        heapq.heappush(self._idle, (node.used, next(self._clock), node))

    def _read(self, lease: Lease, buffer: KeyValueBuffer) -> None:
        size, held = self.page_size, min(buffer.length, lease.length)
        first, (whole, rest) = held // size, divmod(lease.length, size)
        if first < whole:
            pages = torch.tensor([node.page for node in lease.nodes[first:whole]], device=self.keys.device)
            for pool, target in ((self.keys, buffer.keys), (self.values, buffer.values)):
                for layer in range(pool.shape[0]):
                    rows = torch.unflatten(target[layer, :, first * size : whole * size], 1, (-1, size))
                    rows.copy_(pool[layer].index_select(1, pages))
        if rest and held < lease.length:
            page = lease.nodes[-1].page
            buffer.keys[:, :, whole * size : lease.length] = self.keys[:, :, page, :rest]
            buffer.values[:, :, whole * size : lease.length] = self.values[:, :, page, :rest]
        buffer.length = lease.length

    def _write(self, node: Node, first: int, start: int, buffer: KeyValueBuffer, tokens: Tokens | None = None) -> None:
        """Copy the rows of `node` from `first` on, of the page that begins at token `start`; enter new `tokens`."""
        if tokens is not None and node.parent is not None:
            del node.parent.children[node.tokens]
            node.tokens = tokens
            node.parent.children[tokens] = node
        stop = len(node.tokens)
        self.keys[:, :, node.page, first:stop] = buffer.keys[:, :, start + first : start + stop]
        self.values[:, :, node.page, first:stop] = buffer.values[:, :, start + first : start + stop]

    def _write_full(self, fresh: Sequence[tuple[int, int]], buffer: KeyValueBuffer) -> None:
        """Copy whole pages, given as (page, first token); new ones are consecutive, as new nodes have no children."""
        if not fresh:
            return
        size, start = self.page_size, fresh[0][1]
        stop = start + len(fresh) * size
        pages = torch.tensor([page for page, _ in fresh], device=self.keys.device)
        self.keys[:, :, pages] = torch.unflatten(buffer.keys[:, :, start:stop], 2, (-1, size))
        self.values[:, :, pages] = torch.unflatten(buffer.values[:, :, start:stop], 2, (-1, size))


def _closest(parent: Node, wanted: Tokens) -> tuple[Node | None, int]:
    """The child that has most leading tokens in common with `wanted`, and how many; None if none has any."""
    best, most = None, 0
    for child in parent.children.values():
        if child.tokens[0] != wanted[0]:
            continue
        common = 0
        for ours, theirs in zip(child.tokens, wanted, strict=False):
            if ours != theirs:
                break
            common += 1
        if common > most:
            best, most = child, common
    return best, most
