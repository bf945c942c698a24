"""The prefix cache: keys and values of tokens in pages, looked up token by token and read where they are.

A request reads and writes its keys and values through a page table. Its first pages are those of the cache: a radix
tree whose nodes are pages, in which a node's path from the root spells the tokens before it. The others are its own; as
soon as one is full of known tokens, it becomes a node, without a copy. Where a context leaves the tree within a page,
the common rows are copied to a page of its own: at most one page for each request.

If a checkpoint reads its context in blocks, a token's keys depend on all of its block: only whole blocks are kept and
found, and a page holds a whole number of them.

A request pins the last node of its table until it ends. Only a page without successors and pins is ever evicted, the
least recently used first, so the pages before a pinned one stay too. Not thread-safe: the engine's thread owns it.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import torch

from calomel.engine.config import ModelConfig
from calomel.engine.errors import CacheFullError
from calomel.engine.pages import GROWTH, Pages, PageTable

# A page that was not used for this many requests may go so that others lie side by side.
_RECENT: Final = 100
# What is not worth keeping for other requests counts as used this many requests earlier; less than `_RECENT`, or the
# next keystroke would not find it.
_AGED: Final = 50
# A context may lie in so many places: what several prompts share, and the rest of one.
_RUNS: Final = 2
# Prompts of several kinds take turns at one place: what the last requests used stays.
_TURNS: Final = 16
# How many pages are evicted before their place is looked at again.
_EVICTED: Final = 16
# Pages that end alike but for their last tokens: a keystroke makes one, which is of use to the next ones only.
_ENDINGS: Final = 4

Tokens = tuple[int, ...]


def common_beginning(one: Tokens, other: Tokens) -> int:
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


@dataclass(slots=True, eq=False)
class Node:
    """A page in the tree: `tokens` (full unless it is a leaf) after those of `parent`, None once it was evicted.

    It is the last page of `pins` requests, and was last used by request number `used`, unless a page after it was used
    later. `aged`: only the next keystrokes want it.
    """

    tokens: Tokens
    page: int
    parent: Node | None
    children: dict[Tokens, Node] = field(default_factory=dict)
    aged: bool = False
    pins: int = 0
    used: int = 0


@dataclass(slots=True, eq=False)
class Lease(PageTable):
    """A table whose leading pages belong to the cache.

    Attributes:
        node: of the last of these pages; None once it is released.
        shared: how many they are.
        keep: how many leading tokens other requests may want; the next keystrokes at best want the others.
    """

    node: Node | None = None
    shared: int = 0
    keep: float = math.inf


class PrefixCache:
    """The tree of pages, and the tables of the requests that are served.

    Args:
        config: of the model.
        pages: of `page_size` tokens.
        page_size: a multiple of the checkpoint's block.
        dtype: of keys and values.
        device: where they are.
        together: whether pages side by side are read faster, so that the pages of a context are kept so.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        pages: int,
        page_size: int,
        dtype: torch.dtype,
        device: torch.device,
        together: bool = True,
    ) -> None:
        self._block = config.diffusion.block
        self._together = together
        self.pool = Pages(config, pages=pages, size=page_size, dtype=dtype, device=device)
        self._root = Node((), -1, None)
        self._nodes: dict[int, Node] = {}  # by their pages
        self._requests = 0
        self._ties = itertools.count()
        # (used, tie, node) of nodes that were evictable when they were pushed; checked again when popped.
        self._idle: list[tuple[int, int, Node]] = []

    @property
    def tokens(self) -> int:
        """How many there is room for."""
        return self.pool.count * self.pool.size

    @property
    def held_tokens(self) -> int:
        """The room of pages that hold something."""
        return self.tokens - len(self.pool.free) * self.pool.size

    def acquire(self, tokens: Sequence[int], keep: float = math.inf) -> Lease:
        """A table with what the cache has of the beginning of `tokens`, as its first `length`; see `Lease.keep`.

        Raises:
            CacheFullError: there is no page for the rows that have to be copied.
        """
        self._requests += 1
        size, node, table = self.pool.size, self._root, Lease(self.pool, keep=keep)
        while (child := node.children.get(tuple(tokens[table.length : table.length + size]))) is not None:
            if len(child.tokens) < size:
                break
            table.pages.append(child.page)
            node, table.length = child, table.length + size
        table.node, table.shared = node, len(table.pages)
        self._pin(node)
        child, common = _closest(node, tuple(tokens[table.length : table.length + size]))
        common -= common % self._block
        if child is None or not common:
            return table
        self._pin(child)
        try:
            self.reserve(table, table.length + common)
        except CacheFullError:
            self._unpin(node)
            raise
        finally:
            self._unpin(child)
        self._copy(child.page, table.pages[-1], common)
        table.length += common
        return table

    def reserve(self, table: Lease, tokens: int) -> None:
        """Give `table` room for `tokens` tokens.

        Raises:
            CacheFullError: all pages are in use.
        """
        missing = -(-tokens // self.pool.size) - len(table.pages)
        if missing <= 0:
            return
        after = table.pages[-1] if table.pages else -2
        if table.pages and self._together:
            self._clear(range(after + 1, after + 1 + missing))
        if not self.pool.follows(after, missing):
            self._evict(missing)
        if missing > len(self.pool.free):
            raise CacheFullError(
                f"the prefix cache holds {self.tokens} tokens, and more are in use at a time: try again when a request "
                "has ended, or raise cache-tokens"
            )
        table.pages += self.pool.take(missing, after)
        table.moved()

    def store(self, table: Lease, tokens: Sequence[int]) -> None:
        """Share the pages of `table` that are full of committed tokens, as far as they are those of `tokens`.

        Once all of `tokens` are committed, the rows of the last page, which is written on, are shared as a copy.
        """
        size, last = self.pool.size, table.node
        if last is None:
            return
        node, whole = last, min(table.length, len(tokens)) // size
        for place in range(table.shared, whole):
            wanted = tuple(tokens[place * size : (place + 1) * size])
            held = node.children.get(wanted)
            if held is None:
                held = self._add(node, wanted, table.pages[place], aged=place * size >= table.keep)
            else:
                self.pool.give(table.pages[place])
                table.pages[place] = held.page
                table.moved()
            node = held
        self._pin(node)
        self._unpin(last)
        table.node, table.shared = node, whole
        if table.length >= len(tokens) > whole * size:
            rest = tuple(tokens[whole * size :])
            if _closest(node, rest)[1] < len(rest):
                self._end(node, rest, table)

    def _end(self, node: Node, rest: Tokens, table: Lease) -> None:
        """Copy the rows of `rest` from a page of `table` to a page that lies out of its way."""
        grown = range(table.pages[-1] + 1, table.pages[-1] + 1 + len(table.pages) // GROWTH)
        self._evict(1)
        page = next((page for page in reversed(self.pool.free) if page not in grown), None)
        if page is not None:
            self.pool.free.remove(page)
            self._copy(table.pages[table.shared], page, len(rest))
            self._offer(self._add(node, rest, page, aged=table.length > table.keep))

    def release(self, table: Lease) -> None:
        """End the use of `table`; what it shares is kept while there is room."""
        node, begin = table.node, table.shared * self.pool.size
        if node is None:
            return
        for page in table.pages[table.shared :]:
            self.pool.give(page)
        self._unpin(node, aged=begin > table.keep)
        if self._together and len(table.runs(0, begin)) > _RUNS:
            self._straighten(node, table)
        table.pages, table.node = [], None
        table.moved()

    def _straighten(self, node: Node, table: Lease) -> None:
        """Move the pages of `table` up to that of `node`, its last, side by side, unless others are using them."""
        path = [node]
        while path[0].parent is not None and path[0].parent is not self._root:
            path.insert(0, path[0].parent)
        if any(each.pins for each in _below(path[0])):
            return
        self._pin(node)  # what is moved is not evicted
        wanted = len(path) + len(path) // GROWTH
        self._evict(wanted, recent=False)
        start, stop = self.pool.longest()
        if stop - start >= wanted:
            pages = self.pool.take(len(path), -2)
            self.pool.move(table.runs(0, len(path) * self.pool.size), pages[0])
            for each, page in zip(path, pages, strict=True):
                self.pool.give(each.page)
                del self._nodes[each.page]
                each.page = page
            self._nodes |= {each.page: each for each in path}
        self._unpin(node, aged=node.aged)

    def _add(self, parent: Node, tokens: Tokens, page: int, *, aged: bool) -> Node:
        """A new node. It takes the place of an ending that it continues, or of the oldest of several."""
        endings = [child for child in parent.children.values() if len(child.tokens) < self.pool.size and not child.pins]
        gone = [child for child in endings if tokens[: len(child.tokens)] == child.tokens]
        if not gone and len(endings) >= _ENDINGS:
            gone = [min(endings, key=lambda child: child.used)]
        for child in gone:
            self._remove(child)
        node = Node(tokens, page, parent, aged=aged, used=self._requests - _AGED * aged)
        parent.children[tokens] = self._nodes[page] = node
        return node

    def _copy(self, page: int, to: int, rows: int) -> None:
        """Copy the first rows of one page to another."""
        self.pool.move([slice(page * self.pool.size, page * self.pool.size + rows)], to)

    def _clear(self, pages: Iterable[int]) -> None:
        """Free those of `pages` that only keystrokes at an earlier place wanted, from the first on."""
        for page in pages:
            node = self._nodes.get(page)
            if node is None:
                continue
            below = _below(node)
            latest = max(each.used for each in below) + _AGED
            if not node.aged or latest > self._requests - _TURNS or any(each.pins for each in below):
                return
            for each in reversed(below):
                self._remove(each)

    def _remove(self, node: Node) -> None:
        """Free the page of a node that has neither pins nor children."""
        parent, node.parent = node.parent, None
        del self._nodes[node.page]
        self.pool.give(node.page)
        if parent is not None:
            del parent.children[node.tokens]
            # Whoever used a page also used those before it.
            parent.used = max(parent.used, node.used)
            self._offer(parent)

    def _evict(self, pages: int, *, recent: bool = True) -> None:
        """Free the least recently used: until so many are free, and side by side unless all that is left is recent.

        Those of the last requests are evicted only if `recent`.
        """
        evicted = 0
        while self._idle:
            enough = len(self.pool.free) >= pages
            if (enough or not recent) and self._idle[0][0] > self._requests - _RECENT:
                return
            if enough and not self._together:
                return
            if enough and not evicted % _EVICTED:
                start, stop = self.pool.longest()
                if stop - start >= pages:
                    return
            used, _, node = heapq.heappop(self._idle)
            if node.parent is not None and not node.pins and not node.children and node.used == used:
                self._remove(node)
                evicted += 1

    def _pin(self, node: Node) -> None:
        node.pins += 1
        node.used = self._requests

    def _unpin(self, node: Node, *, aged: bool = False) -> None:
        node.pins -= 1
        node.used = self._requests - _AGED * aged
        self._offer(node)

    def _offer(self, node: Node) -> None:
        """Queue `node` for eviction if nothing needs it."""
        if node is self._root or node.pins or node.children:
            return
        if len(self._idle) > 4 * self.pool.count + 64:  # drop entries used again since
            self._idle = [(used, tie, old) for used, tie, old in self._idle if old.parent and old.used == used]
            heapq.heapify(self._idle)
        heapq.heappush(self._idle, (node.used, next(self._ties), node))


def _below(node: Node) -> list[Node]:
    """`node` and all nodes below it, parents before their children."""
    found = [node]
    for each in found:
        found += each.children.values()
    return found


def _closest(parent: Node, wanted: Tokens) -> tuple[Node | None, int]:
    """The child that has most leading tokens in common with `wanted`, and how many; None if none has any."""
    best, most = None, 0
    for child in parent.children.values() if wanted else ():
        if child.tokens[0] == wanted[0] and (common := common_beginning(child.tokens, wanted)) > most:
            best, most = child, common
    return best, most
