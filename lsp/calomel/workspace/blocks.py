"""Where a file can be cut: at the beginnings of definitions, of their members, and of runs of simple statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tree_sitter import Node, Tree

from calomel.workspace.indentation import block_starts_by_lines
from calomel.workspace.languages import Grammar
from calomel.workspace.node_kinds import CONTAINERS, DEFINITIONS, is_comment

# Where the syntax offers no cut for so many lines, empty lines do.
_LONG: Final = 60
_DEEPEST: Final = 4
# Written above a definition, and part of it.
_ATTACHED: Final = frozenset({"attribute_item", "annotation", "decorator", "inner_attribute_item"})


def block_starts(tree: Tree, grammar: Grammar, text: str) -> tuple[int, ...]:
    """Lines at which an excerpt may begin well, ascending; the first is 0."""
    kinds = DEFINITIONS[grammar.name]
    starts = {0, *_starts(tree.root_node, kinds, 0)}
    ordered = sorted(starts)
    last = text.count("\n")
    gaps = [(one, other) for one, other in zip(ordered, [*ordered[1:], last], strict=True) if other - one > _LONG]
    if not gaps:
        return tuple(ordered)
    by_lines = block_starts_by_lines(text)
    return tuple(sorted(starts.union(line for line in by_lines if any(a < line < b for a, b in gaps))))


def _starts(parent: Node, kinds: Mapping[str, str], depth: int) -> Iterator[int]:
    """The first lines of the blocks among the children of a node, and of those among their members."""
    before, single, attached = -2, False, -1
    for node in parent.named_children:
        first, last = node.start_point.row, node.end_point.row
        kind = node.type
        if is_comment(kind) or kind in _ATTACHED:
            attached = first if attached < 0 or first > before + 1 else attached
            before = last
            continue
        start = attached if attached >= 0 and first <= before + 1 else first
        simple = first == last
        if not (simple and single and start <= before + 1):
            yield start
        if depth < _DEEPEST and not simple:
            body = _members(node, kinds)
            if body is not None:
                yield from _starts(body, kinds, depth + 1)
        before, single, attached = last, simple, -1


def _members(node: Node, kinds: Mapping[str, str]) -> Node | None:
    """The body of a definition with members, below what wraps it."""
    inside: list[Node] = node.named_children if node.named_child_count <= _DEEPEST else []
    for inner in (node, *inside):
        if kinds.get(inner.type) in CONTAINERS:
            return inner.child_by_field_name("body")
    return None
