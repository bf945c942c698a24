"""What a filter looks at: one suggestion, the text it is for, and what the user just did there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from calomel.prompts.parts import edited


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
    cut_off: bool = False
    errors: Callable[[str], tuple[int, int] | None] = _unknown

    @property
    def after(self) -> str:
        """The text with all edits applied."""
        return edited(self.text, self.edits)
