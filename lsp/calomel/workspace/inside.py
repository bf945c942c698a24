"""Whether a place lies in a comment or in a string."""

from __future__ import annotations

from typing import Final, Literal

from tree_sitter import Node, Tree

from calomel.workspace.node_kinds import is_comment, is_interpolation, is_string

Inside = Literal["comment", "string"]
_CLOSED: Final = ("*/", "-->", "=end", "-}")
_OPENERS: Final = "\"'`"


def inside(tree: Tree, text: str, offset: int) -> Inside | Literal["unknown"] | None:
    """What text at `offset` would become a part of; "unknown" where the tree has an error instead of an answer."""
    if offset == 0:
        return None
    node = tree.root_node.descendant_for_byte_range(2 * (offset - 1), 2 * offset)
    while node is not None:
        if is_comment(node.type):
            return "comment" if _open_comment(node, text, offset) else None
        if is_interpolation(node.type):
            return None
        if is_string(node.type) and not _is_piece(node):
            return "string" if _open_string(node, text, offset) else None
        if node.is_error:
            return "unknown"
        node = node.parent
    return None


def begins_unclosed_string(tree: Tree, quote: int) -> bool:
    """Whether the quote at this offset is one that the grammar could make nothing of, since no other closes it."""
    node = tree.root_node.descendant_for_byte_range(2 * quote, 2 * quote + 2)
    return node is not None and (node.is_error or (node.parent is not None and node.parent.is_error))


def _is_piece(node: Node) -> bool:
    """Whether the node is a piece of a string: the string itself, above it, knows where it ends."""
    parent = node.parent
    return parent is not None and (is_string(parent.type) or parent.is_error)


def _open_comment(node: Node, text: str, offset: int) -> bool:
    end = node.end_byte // 2
    if offset < end:
        return True
    comment = text[node.start_byte // 2 : end]
    return not comment.endswith(_CLOSED) and not comment.endswith("\n")


def _open_string(node: Node, text: str, offset: int) -> bool:
    start, end = node.start_byte // 2, node.end_byte // 2
    if start < offset < end:
        # Between the marks of a prefix (r", f""") there is no text yet.
        return text[start:offset].strip("bBfFrRuULtT$@") != ""
    last = node.children[-1] if node.child_count else None
    return offset == end and (last is not None and last.is_missing)
