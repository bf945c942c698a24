"""The books of a prefix cache: every page is held once or free, every node stands where its tokens say."""

from __future__ import annotations

from collections.abc import Iterator

from calomel.engine.cache import Node, PrefixCache


def check(cache: PrefixCache) -> None:
    """Fail where a page is lost or held twice, a node is misplaced, or an idle page is not evictable."""
    held: list[int] = []
    idle = {(used, id(node)) for used, _, node in cache._idle}
    for node in walk(cache._root):
        held.append(node.page)
        assert 0 < len(node.tokens) <= cache.page_size
        assert not node.children or len(node.tokens) == cache.page_size
        assert node.parent is not None
        assert node.parent.children.get(node.tokens) is node
        assert node.pins >= 0
        assert node.pins or node.children or (node.used, id(node)) in idle, f"page {node.page} can not be evicted"
    assert sorted(held + cache._free) == list(range(cache.pages)), f"{len(held)} held, {len(cache._free)} free"


def walk(node: Node) -> Iterator[Node]:
    waiting = list(node.children.values())
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(found.children.values())
