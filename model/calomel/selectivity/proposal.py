"""What a filter looks at: one suggestion, the text it is for, and what the user has just done there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple


class Edit(NamedTuple):
    """Replace `start:end`, offsets in a text, by `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Recent:
    """Something the user did a moment ago, in offsets of the text as it is now.

    Attributes:
        start: where it happened.
        end: where the text that was inserted then ends; `start` when nothing was.
        removed: what was deleted there.
        inserted: what was written there.
    """

    start: int
    end: int
    removed: str
    inserted: str


def _unknown() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Proposal:
    """One suggestion before it is decided about.

    Attributes:
        kind: `fill` inserts at the cursor, `edit` rewrites lines.
        text: of the document, as it is.
        edits: sorted, apart from each other, all of `text`, trimmed to what they change.
        cursor: offset in `text`.
        language_id: of the document.
        region: the part of `text` that the model was asked to rewrite; None for a fill.
        recent: what the user did lately, oldest first.
        edited: what the last edits did, however long ago, oldest first.
        masked: `text` with every character of a secret replaced; the same length. Empty where nothing is masked.
        mask: masks the secrets of any other text; the same length again.
        cut_off: the model had more to say than its limit allowed, and what it said ends within a line.
        errors: syntax errors of `text` and of the text with the edits; None where nobody can tell. Asked only by the
            filter that needs it: it parses.
    """

    kind: Literal["fill", "edit"]
    text: str
    edits: tuple[tuple[int, int, str], ...]
    cursor: int
    language_id: str = ""
    region: tuple[int, int] | None = None
    recent: tuple[Recent, ...] = ()
    edited: tuple[Recent, ...] = ()
    masked: str = ""
    mask: Callable[[str], str] = str
    cut_off: bool = False
    errors: Callable[[], tuple[int, int] | None] = _unknown

    @property
    def after(self) -> str:
        """The text with all edits made."""
        parts: list[str] = []
        at = 0
        for start, end, new in self.edits:
            parts += (self.text[at:start], new)
            at = end
        parts.append(self.text[at:])
        return "".join(parts)
