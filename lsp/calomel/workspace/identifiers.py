"""The names around a place, nearest first."""

from __future__ import annotations

import re
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
    for word, start in _words(document, offset, line - _NEAR_LINES, line + _NEAR_LINES + 1, keywords):
        if _is_name(tree, start, word):
            found[word] = None
    for scope in reversed(scopes):
        for match in WORD.finditer(scope.signature):
            if match[0] not in keywords and len(match[0]) >= _SHORTEST:
                found.setdefault(match[0])
    if len(found) < limit:
        known = keywords.union(found)
        for word, start in _words(document, offset, line - _FAR_LINES, line + _FAR_LINES + 1, known):
            if len(found) >= limit:
                break
            if _is_name(tree, start, word):
                found[word] = None
    return tuple(found)[:limit]


def _words(document: Document, offset: int, first: int, end: int, known: frozenset[str]) -> list[tuple[str, int]]:
    """Distinct new words of some lines, the nearest first, each with the offset where it is nearest in the code.

    A word whose nearest place is in a comment is not looked for elsewhere.
    """
    first = max(0, first)
    shift = document.line_start(first) - offset
    text = "".join(document.lines(first, end))
    nearest: dict[str, tuple[int, int]] = {}
    for match in WORD.finditer(text):
        word = match[0]
        if len(word) < _SHORTEST or word in known:
            continue
        start = match.start() + shift
        place = (max(start, -start - len(word), 0), start)
        if word not in nearest or place < nearest[word]:
            nearest[word] = place
    return [(word, start + offset) for word, (_, start) in sorted(nearest.items(), key=lambda item: item[1])]


def _is_name(tree: Tree | None, start: int, word: str) -> bool:
    """Whether the word stands in the code, neither in a comment nor in a string."""
    if tree is None:
        return True
    node = tree.root_node.descendant_for_byte_range(2 * start, 2 * (start + len(word)))
    if node is None:
        return True
    return node.is_named and not (is_comment(node.type) or is_string(node.type) or node.type in _TEXT)
