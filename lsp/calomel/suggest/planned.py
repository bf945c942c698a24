"""An edit that remembers what it replaces, so that it can be checked against a text that has moved on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from calomel.suggest.graphemes import common_prefix, common_suffix
from calomel.suggest.suggestion import TextEdit


class Change(Protocol):
    """What one change did, in offsets of the text before it (`calomel.workspace.documents.TextChange` is one)."""

    @property
    def start(self) -> int:
        """Where it began."""

    @property
    def end(self) -> int:
        """Where the replaced text ended."""

    @property
    def inserted(self) -> str:
        """What stands there since."""

    @property
    def removed(self) -> str:
        """What stood there before."""


class Planned(NamedTuple):
    """Replace `removed`, which stands at `start:end`, by `text`."""

    start: int
    end: int
    text: str
    removed: str

    @property
    def edit(self) -> TextEdit:
        """The same without its memory."""
        return TextEdit(self.start, self.end, self.text)

    def shifted(self, by: int) -> Planned:
        """The same, `by` characters further on."""
        return Planned(self.start + by, self.end + by, self.text, self.removed)

    def fits(self, text: str) -> bool:
        """Whether `text` still has at `start:end` what this edit replaces."""
        return 0 <= self.start <= len(text) and text[self.start : self.end] == self.removed


def plan(text: str, edits: Iterable[TextEdit]) -> tuple[Planned, ...]:
    """`edits` of `text`, sorted, trimmed to what they really change; those that change nothing are left out."""
    planned = (trimmed(Planned(edit.start, edit.end, edit.text, text[edit.start : edit.end])) for edit in sorted(edits))
    return tuple(edit for edit in planned if edit.text or edit.removed)


def trimmed(edit: Planned) -> Planned:
    """The same edit without what its old and its new text share at their beginning, then at their end."""
    start, end, text, removed = edit
    if not text or not removed:
        return edit
    front = common_prefix(removed, text)
    text, removed, start = text[front:], removed[front:], start + front
    back = common_suffix(removed, text)
    if back:
        text, removed, end = text[:-back], removed[:-back], end - back
    return Planned(start, end, text, removed)


def slid(edit: Planned, text: str, cursor: int) -> Planned:
    r"""The same insertion moved to begin at `cursor`, if the result stays the same; else the edit as it was.

    Inserting "b\n" before a line end, or "\nb" behind it, is the same; shown at the cursor it reads better.
    """
    distance = edit.start - cursor
    if edit.removed or not edit.text or distance == 0:
        return edit
    if 0 < distance <= len(edit.text) and text[cursor : edit.start] == edit.text[len(edit.text) - distance :]:
        moved = text[cursor : edit.start] + edit.text[: len(edit.text) - distance]
        return Planned(cursor, cursor, moved, "")
    ahead = -distance
    if 0 < ahead <= len(edit.text) and text[edit.start : cursor] == edit.text[:ahead]:
        return Planned(cursor, cursor, edit.text[ahead:] + edit.text[:ahead], "")
    return edit


def edits_of(planned: Sequence[Planned]) -> tuple[TextEdit, ...]:
    """The edits without their memory."""
    return tuple(edit.edit for edit in planned)
