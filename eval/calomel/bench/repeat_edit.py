"""The simplest next edit: the last one once more, by text substitution.

The last edit is trimmed to what it really replaced, then widened to whole words, since `x` to `xs` is no substitution
that a person would repeat inside of `max`. Its old text is looked for behind the cursor, then from the beginning; where
it stands as a whole word, the new text is put in its place. An edit that only inserts has no old text to look for, and
one that only deletes repeats as a deletion. No tree, no model, no judgement: whatever is found is shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from calomel.prompts.parts import Hunk
from calomel.suggest.suggestion import TextEdit


def repeat_last(text: str, hunks: Sequence[Hunk], cursor: int) -> TextEdit | None:
    """The last edit at the next place of its old text; None where there is none.

    Args:
        text: the document's.
        hunks: its own edits, newest last.
        cursor: offset; places behind it come first.
    """
    if not hunks:
        return None
    old, new = substitution(hunks[-1].before, hunks[-1].after)
    if not old.strip():
        return None
    places = [match.start() for match in re.finditer(_whole(old), text)]
    # Where the new text holds the old one, the places that were edited already are no places.
    inside = new.find(old)
    if inside >= 0:
        places = [at for at in places if text[at - inside : at - inside + len(new)] != new or at < inside]
    if not places:
        return None
    at = next((at for at in places if at >= cursor), places[0])
    return TextEdit(at, at + len(old), new)


def substitution(before: str, after: str) -> tuple[str, str]:
    """The old text and the new one without what both share at their ends, whole words."""
    front = 0
    while front < min(len(before), len(after)) and before[front] == after[front]:
        front += 1
    back = 0
    while back < min(len(before), len(after)) - front and before[-1 - back] == after[-1 - back]:
        back += 1
    # A word that is cut on either side is taken whole.
    while front and _is_letter(before[front - 1]) and _cuts(before, after, front, back, first=True):
        front -= 1
    while back and _is_letter(before[-back]) and _cuts(before, after, front, back, first=False):
        back -= 1
    return before[front : len(before) - back], after[front : len(after) - back]


def _cuts(before: str, after: str, front: int, back: int, *, first: bool) -> bool:
    """Whether the first (or the last) character of the old or the new middle goes on with a word."""
    behind = before[len(before) - back : len(before) - back + 1]
    ahead = before[front - 1 : front] if front else ""
    for text in (before, after):
        middle = text[front : len(text) - back]
        edge = (middle[:1] if first else middle[-1:]) or (behind if first else ahead)
        if edge and _is_letter(edge):
            return True
    return False


def _whole(old: str) -> str:
    left = r"(?<!\w)" if _is_letter(old[0]) else ""
    right = r"(?!\w)" if _is_letter(old[-1]) else ""
    return left + re.escape(old) + right


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"
