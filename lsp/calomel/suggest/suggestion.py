"""A suggestion: edits of one document, as they are shown to the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from calomel.suggest.completer import Candidate, Kind
from calomel.suggest.silence import Silence


class TextEdit(NamedTuple):
    """Replace `start:end`, offsets in the document's text, by `text`."""

    start: int
    end: int
    text: str


def apply(text: str, edits: Sequence[TextEdit]) -> str:
    """`text` after `edits`, which are sorted, do not overlap, and all refer to `text` itself."""
    parts: list[str] = []
    at = 0
    for edit in edits:
        parts += (text[at : edit.start], edit.text)
        at = edit.end
    parts.append(text[at:])
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What to offer.

    Attributes:
        id: names it in commands and outcomes. Typing into a suggestion shortens it and keeps its id.
        uri: of the document.
        version: the editor's number of the document that the offsets refer to.
        revision: our own number of the same text.
        kind: `fill` inserts at the cursor, `edit` rewrites lines.
        edits: sorted, apart from each other, all referring to the same text.
        probability: that it gets accepted, as far as the gate can tell; 0 to 1.
        cursor_after: offset in the resulting text where the cursor should stand; None for the end of the last edit.
        jump: it is more than two lines from the cursor: show where it is before showing what it is.
        candidate: the model's own account of it.
        waited: seconds of debounce before the model was asked.
        cached: no model was asked for this answer.
        truncated: the suggestion was cut by a limit, the model had more to say.
    """

    id: str
    uri: str
    version: int | None
    revision: int
    kind: Kind
    edits: tuple[TextEdit, ...]
    probability: float = 0.0
    cursor_after: int | None = None
    jump: bool = False
    candidate: Candidate = field(default_factory=lambda: Candidate(""), repr=False)
    waited: float = 0.0
    cached: bool = False
    truncated: bool = False

    @property
    def start(self) -> int:
        """Where the first edit begins."""
        return self.edits[0].start

    @property
    def end(self) -> int:
        """Where the last edit ends."""
        return self.edits[-1].end

    @property
    def maker(self) -> str:
        """Who proposed it: the model, or a rule that the model agreed with."""
        return self.candidate.maker

    @property
    def insert_text(self) -> str:
        """The new text of the only edit, or of the last one; `joined` gives all."""
        return self.edits[-1].text

    def joined(self, text: str) -> TextEdit:
        """All edits as one, with the unchanged text between them; `text` is the document's."""
        inside = [TextEdit(start - self.start, end - self.start, new) for start, end, new in self.edits]
        return TextEdit(self.start, self.end, apply(text[self.start : self.end], inside))


Answer = Suggestion | Silence
