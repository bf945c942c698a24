"""What is to be seen at one moment: a text, a caret, a suggestion, and what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from calomel.replay.events import Edit
    from calomel.suggest.canvas_text import CanvasText

Mark: TypeAlias = Literal["", "new", "old", "caret"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that looks alike: as it is, suggested (`new`), to be removed (`old`), or under the caret."""

    text: str
    mark: Mark = ""


@dataclass(slots=True)
class Tally:
    """What came of the moments so far."""

    shown: int = 0
    accepted: int = 0
    partly: int = 0
    rejected: int = 0
    silent: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment.

    Attributes:
        path: of the file.
        text: of it.
        caret: offset in it.
        edits: suggested, sorted.
        canvas: the answer behind a denoising step; None when there is nothing to see of it.
        steps: of that answer in all.
        likely: that the suggestion gets accepted, by the calibrator; None where nobody knows.
        maker: who proposed it.
        milliseconds: that the model took.
        said: one sentence about what happens.
        outcome: what the person did, in one word; empty while nobody knows.
    """

    path: str
    text: str
    caret: int
    edits: tuple[Edit, ...] = ()
    canvas: CanvasText | None = None
    steps: int = 0
    likely: float | None = None
    maker: str = ""
    milliseconds: float = 0.0
    said: str = ""
    outcome: str = ""

    def pieces(self) -> Sequence[Piece]:
        """The text with its suggestion and its caret, in the order of reading."""
        found: list[Piece] = []
        at = 0
        # The caret stands in front of what is suggested at its place, and is seen once.
        owner = next(
            (edit for edit in self.edits if edit.start == self.caret or edit.start < self.caret < edit.end), None
        )
        for edit in self.edits:
            found += self._plain(at, edit.start, last=False, free=owner is None)
            if edit is owner:
                found.append(Piece("", "caret"))
            if edit.end > edit.start:
                found.append(Piece(self.text[edit.start : edit.end], "old"))
            if edit.text:
                found.append(Piece(edit.text, "new"))
            at = edit.end
        found += self._plain(at, len(self.text), last=True, free=owner is None)
        return [piece for piece in found if piece.text or piece.mark]

    def focus(self) -> tuple[int, int]:
        """First and last line, from 0, of what has to be seen: the caret, and the suggestion."""
        offsets = [self.caret, *(each for edit in self.edits for each in (edit.start, edit.end))]
        return self._line(min(offsets)), self._line(max(offsets))

    def place(self) -> str:
        """Where the suggestion is, as `path:line`."""
        start = self.edits[0].start if self.edits else self.caret
        return f"{self.path}:{self._line(start) + 1}"

    def _line(self, offset: int) -> int:
        return self.text.count("\n", 0, offset)

    def _plain(self, start: int, end: int, *, last: bool, free: bool) -> Sequence[Piece]:
        """Text that stays, with the caret in it if that is where it stands."""
        if not free or not (start <= self.caret < end or (last and self.caret == end)):
            return [Piece(self.text[start:end])]
        under = self.text[self.caret : min(end, self.caret + 1)]
        # A line end cannot be seen: the caret stands in front of it.
        width = 0 if under in {"", "\n"} else 1
        return [
            Piece(self.text[start : self.caret]),
            Piece(under if width else "", "caret"),
            Piece(self.text[self.caret + width : end]),
        ]
