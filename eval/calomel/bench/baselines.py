"""What next edits have to beat: the last edit once more, by text substitution."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from calomel.prompts.parts import Hunk
from calomel.replay.events import shared_ends
from calomel.suggest.edit import TextEdit

# Words are kept whole.
_PIECE: Final = re.compile(r"\w+|\W")


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
    left = r"(?<!\w)" if re.match(r"\w", old) else ""
    right = r"(?!\w)" if re.search(r"\w\Z", old) else ""
    places = [match.start() for match in re.finditer(left + re.escape(old) + right, text)]
    # Where the new text holds the old one, the places that were edited already are no places.
    inside = new.find(old)
    if inside >= 0:
        places = [at for at in places if text[at - inside : at - inside + len(new)] != new or at < inside]
    if not places:
        return None
    at = next((at for at in places if at >= cursor), places[0])
    return TextEdit(at, at + len(old), new)


def substitution(before: str, after: str) -> tuple[str, str]:
    """The old text and the new one without what both share at their ends, in whole words."""
    old, new = _PIECE.findall(before), _PIECE.findall(after)
    front, back = shared_ends(old, new)
    return "".join(old[front : len(old) - back]), "".join(new[front : len(new) - back])
