"""A place of a document, followed through changes: it grows with what is written inside it or at its ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calomel.replay.events import Edit


@dataclass(frozen=True, slots=True)
class Region:
    """The code points [start, end) of a text.

    Attributes:
        start: stays in front of what is inserted right there.
        end: goes behind what is inserted right there.
    """

    start: int
    end: int

    def text(self, text: str) -> str:
        """What stands there."""
        return text[self.start : self.end]

    def after(self, edits: Sequence[Edit]) -> Region:
        """Where it is after a change whose edits are trimmed, sorted and of one text."""
        return Region(_moved(self.start, edits, behind=False), _moved(self.end, edits, behind=True))


def trimmed(text: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Edits of `text` without what they leave as it is at their ends; those that change nothing are left out."""
    found: list[Edit] = []
    for edit in edits:
        old, new = text[edit.start : edit.end], edit.text
        head = _common(old, new)
        tail = _common(old[head:][::-1], new[head:][::-1])
        if head + tail < max(len(old), len(new)):
            found.append(Edit(edit.start + head, edit.end - tail, new[head : len(new) - tail]))
    return tuple(found)


def difference(before: str, after: str) -> tuple[Edit, ...]:
    """The smallest single edit that makes one text of the other; none when they are the same."""
    return trimmed(before, (Edit(0, len(before), after),))


def _moved(offset: int, edits: Sequence[Edit], *, behind: bool) -> int:
    shift = 0
    for edit in edits:
        if edit.start > offset or (edit.start == offset and not behind):
            break
        if edit.end > offset:
            # It replaces text on both sides: all of the new text belongs to the region.
            return edit.start + shift + (len(edit.text) if behind else 0)
        shift += len(edit.text) - (edit.end - edit.start)
    return offset + shift


def _common(one: str, other: str) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
