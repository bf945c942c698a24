"""The names around a place, nearest first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tree_sitter import Tree

from calomel.workspace.documents import Document
from calomel.workspace.node_kinds import is_comment, is_string
from calomel.workspace.scope import Scope

WORD: Final = re.compile(r"[^\W\d]\w*")
# What the cursor's lines mention matters most, then what its function takes, then what is farther away.
_NEAR_LINES: Final = 3
_FAR_LINES: Final = 40
# One letter names a loop's counter, not a thing that is defined elsewhere.
_SHORTEST: Final = 2
_TEXT: Final = frozenset({"text", "jsx_text"})


def identifiers_near(
    document: Document, offset: int, scopes: tuple[Scope, ...], tree: Tree | None, keywords: frozenset[str], limit: int
) -> tuple[str, ...]:
    """Distinct identifiers: of the nearest lines, then of the enclosing signatures, then of more lines."""
    line = document.line_of(offset)
    found: dict[str, None] = {}
    near = _words(document, offset, line - _NEAR_LINES, line + _NEAR_LINES + 1)
    for word, start in near:
        if word not in found and word not in keywords and _is_name(tree, start, word):
            found[word] = None
    for scope in reversed(scopes):
        for match in WORD.finditer(scope.signature):
            if match[0] not in keywords and len(match[0]) >= _SHORTEST:
                found.setdefault(match[0])
    if len(found) < limit:
        for word, start in _words(document, offset, line - _FAR_LINES, line + _FAR_LINES + 1):
            if len(found) >= limit:
                break
            if word not in found and word not in keywords and _is_name(tree, start, word):
                found[word] = None
    return tuple(found)[:limit]


def _words(document: Document, offset: int, first: int, end: int) -> Iterator[tuple[str, int]]:
    """Words of some lines with their offsets, by their distance from `offset`."""
    first = max(0, first)
    start = document.line_start(first)
    text = "".join(document.lines(first, end))
    spans = [(match.start() + start, match[0]) for match in WORD.finditer(text) if len(match[0]) >= _SHORTEST]
    spans.sort(key=lambda span: (max(span[0] - offset, offset - span[0] - len(span[1]), 0), span[0]))
    for at, word in spans:
        yield word, at


def _is_name(tree: Tree | None, start: int, word: str) -> bool:
    """Whether the word stands in the code, neither in a comment nor in a string."""
    if tree is None:
        return True
    node = tree.root_node.descendant_for_byte_range(2 * start, 2 * (start + len(word)))
    if node is None:
        return True
    return node.is_named and not (is_comment(node.type) or is_string(node.type) or node.type in _TEXT)
