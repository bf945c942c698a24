r"""What a filter looks at: one suggestion, the text it is for, what the user just did there, and the lines around.

A line ends at \n, \r\n or \r and at nothing else, unlike in `str.splitlines`. Never more lines around a place are used
than a person sees.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from calomel.prompts.parts import edited

LINE_END: Final = re.compile(r"\r\n|\r|\n")
# Characters. Nobody reads a line longer than this, and text further away is not a neighbour.
_WINDOW: Final = 1600


@dataclass(frozen=True, slots=True)
class Recent:
    """Something the user did a moment ago, in offsets of the text as it is now.

    Attributes:
        start: where it happened.
        end: where the inserted text ends; `start` if nothing was inserted.
        removed: what was deleted there.
        inserted: what was written there.
    """

    start: int
    end: int
    removed: str
    inserted: str


def _unknown(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Proposal:
    """One suggestion before it is judged.

    Attributes:
        kind: `fill` inserts at the cursor, `edit` rewrites lines.
        text: the document's current text.
        edits: sorted, not touching, all in offsets of `text`, trimmed to what they change.
        cursor: offset in `text`.
        language_id: of the document.
        region: the part of `text` that the model was asked to rewrite; None for a fill.
        recent: what the user did recently, oldest first.
        edited: what the last edits did, word by word, however long ago, oldest first.
        withdrawn: the replacements made by edits that were undone.
        builtins: names that the language has without an import; None if unknown.
        masked: `text` with every character of a secret replaced; the same length. Empty if nothing is masked.
        mask: masks the secrets of any other text, keeping its length.
        cut_off: whether the model's answer reached its limit and ends within a line.
        errors: syntax errors of `text`, and of it with the edits and something after the last of them; None if unknown.
            Called only by the filters that need it, as it parses.
    """

    kind: Literal["fill", "edit"]
    text: str
    edits: tuple[tuple[int, int, str], ...]
    cursor: int
    language_id: str = ""
    region: tuple[int, int] | None = None
    recent: tuple[Recent, ...] = ()
    edited: tuple[Recent, ...] = ()
    withdrawn: frozenset[tuple[str, str]] = frozenset()
    builtins: frozenset[str] | None = None
    masked: str = ""
    mask: Callable[[str], str] = str
    cut_off: bool = False
    errors: Callable[[str], tuple[int, int] | None] = _unknown

    @property
    def after(self) -> str:
        """The text with all edits applied."""
        return edited(self.text, self.edits)


def split_lines(text: str) -> list[str]:
    """The lines without their ends; with an empty one after the last line end."""
    return LINE_END.split(text)


def head_of(text: str, offset: int) -> str:
    """The line of `offset`, up to it."""
    least = max(0, offset - _WINDOW)
    return text[max(text.rfind("\n", least, offset), text.rfind("\r", least, offset), least - 1) + 1 : offset]


def rest_of(text: str, offset: int) -> str:
    """The line of `offset`, from there on, without its end."""
    ending = LINE_END.search(text, offset, offset + _WINDOW)
    return text[offset : ending.start() if ending else offset + _WINDOW]


def above(text: str, offset: int) -> list[str]:
    """The lines above the one of `offset`, as far as they are near; the nearest is the last."""
    start = offset - len(head_of(text, offset))
    return split_lines(text[max(0, start - _WINDOW) : start])[:-1]


def below(text: str, offset: int) -> list[str]:
    """The lines below the one of `offset`, as far as they are near."""
    end = offset + len(rest_of(text, offset))
    return split_lines(text[end : end + _WINDOW])[1:]


def filled(lines: list[str], most: int | None = None) -> list[str]:
    """The lines that are not blank, stripped."""
    found: list[str] = []
    for line in lines:
        if len(found) == most:
            break
        if stripped := line.strip():
            found.append(stripped)
    return found


def is_word(character: str) -> bool:
    """Whether a character, or none, is part of a word; so are the marks that letters carry."""
    return character.isalnum() or character == "_" or unicodedata.category(character or " ").startswith("M")
