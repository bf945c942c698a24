"""Text for the cursor that stands behind the same words elsewhere, or that alike blocks beside it have here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calomel.selectivity.analogy import expected
from calomel.suggest.completer import Draft
from calomel.suggest.recall import recall
from calomel.workspace.documents import Document
from calomel.workspace.longest_match import LongestMatch

MAKER: Final = "continuation"
RECALLED: Final = "recalled"
# Three tokens stand everywhere: `self . x`, `( ) :`.
_FEWEST: Final = 5
_LONGEST: Final = 160
# Between two texts, so many characters before the cursor.
_FEWEST_CHARACTERS: Final = 12


def continuation(
    matches: LongestMatch, document: Document, offset: int, mask: Callable[[str], str]
) -> tuple[Draft, ...]:
    """The line that neighbours of this block have here, as they would have it with this block's numbers and names.

    Without such neighbours, what follows the longest match of the last tokens before `offset`, up to the end of that
    line. Where the line goes on behind the cursor, what stands elsewhere in the document between the same two texts.
    None for a short match, and none that `mask` finds a secret in.
    """
    end = offset
    text = document.text
    while end < len(text) and text[end] not in "\r\n":
        end += 1
    rest = text[offset:end]
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    draft = _beside(text, offset, offset - start, rest.rstrip())
    if draft is None:
        draft = _between(text, offset) if rest.strip() else _behind(matches, document, offset)
    if draft is None or not draft.text.strip() or len(draft.text) > _LONGEST:
        return ()
    line = text[start:offset] + draft.text + rest
    return (draft,) if mask(line) == line else ()


def _beside(text: str, offset: int, column: int, rest: str) -> Draft | None:
    found = expected(text, offset)
    if found is None or (found.votes == 1 and not found.slots) or not found.line.endswith(rest):
        return None
    line = found.line[column : len(found.line) - len(rest)]
    return Draft(line, MAKER) if line.strip() else None


def _behind(matches: LongestMatch, document: Document, offset: int) -> Draft | None:
    found = matches.find(document, offset)
    return None if found is None or found.tokens < _FEWEST else Draft(found.text, MAKER)


def _between(text: str, offset: int) -> Draft | None:
    found = recall(text[:offset], text[offset:])
    if found is None or found.before < _FEWEST_CHARACTERS or "\n" in found.text or "\r" in found.text:
        return None
    return Draft(found.text, RECALLED)
