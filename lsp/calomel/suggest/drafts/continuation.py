"""Text for the cursor that stands behind the same words elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calomel.suggest.completer import Draft
from calomel.workspace.documents import Document
from calomel.workspace.longest_match import LongestMatch

MAKER: Final = "continuation"
# Three tokens stand everywhere: `self . x`, `( ) :`.
_FEWEST: Final = 5
_LONGEST: Final = 160


def continuation(
    matches: LongestMatch, document: Document, offset: int, mask: Callable[[str], str]
) -> tuple[Draft, ...]:
    """What follows the longest match of the last tokens before `offset`, up to the end of that line.

    None for a short match, none where the line goes on behind the cursor, and none that `mask` finds a secret in.
    """
    end = offset
    text = document.text
    while end < len(text) and text[end] not in "\r\n":
        end += 1
    if text[offset:end].strip():
        return ()
    found = matches.find(document, offset)
    if found is None or found.tokens < _FEWEST or not found.text.strip() or len(found.text) > _LONGEST:
        return ()
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    line = text[start:offset] + found.text
    return (Draft(found.text, MAKER),) if mask(line) == line else ()
