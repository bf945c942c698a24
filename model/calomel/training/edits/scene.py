"""A scene: one moment of a story, as the model meets it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.prompts.parts import Hunk
from calomel.prompts.region import RegionBounds, region_around
from calomel.training.edits.story import Change

# What the smallest model may rewrite at once. A place that is silent is so within these lines.
REGION: Final = RegionBounds(above=1, below=2, characters=160)


@dataclass(frozen=True, slots=True)
class Focus:
    """A place worth asking about.

    Attributes:
        offset: in characters of the scene's text; of the cursor, or where the line of a change begins.
        kind: of the story, as "rename"; "half_done:rename" where the person is typing; "silence:finished" and the like
            where nothing is to change.
        cursor: the cursor stands at `offset`.
    """

    offset: int
    kind: str
    cursor: bool

    @property
    def silent(self) -> bool:
        """Whether the lines around this place shall stay as they are."""
        return self.kind.startswith("silence:")


@dataclass(frozen=True, slots=True)
class Scene:
    """What the person has done, what the file is now, and what is still to come.

    Attributes:
        language: of the story.
        path: of the story.
        text: now.
        hunks: what the diff stream says of this file, oldest first, the edit that is being made included.
        changes: all that is still to come, in characters of `text`, sorted, not overlapping; () when nothing is.
        focuses: up to six places: the next change first, then others that are to change, then silent ones.
    """

    language: str
    path: str
    text: str
    hunks: tuple[Hunk, ...]
    changes: tuple[Change, ...]
    focuses: tuple[Focus, ...]

    def end(self) -> str:
        """The text behind all changes."""
        text = self.text
        for change in reversed(self.changes):
            text = change.apply(text)
        return text


def is_silent(text: str, changes: Sequence[Change], offset: int) -> bool:
    """Whether no change lies in, or touches, the region around `offset`."""
    start, end = region_around(text, offset, REGION)
    return all(change.end < start or change.start > end for change in changes)


def pending(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Changes made one behind the other, in coordinates of the text before the first: sorted, not overlapping.

    Those that touch each other become one.
    """
    edits: list[Change] = []
    for change in changes:
        edits = _with(edits, change)
    return tuple(edits)


def _with(edits: Sequence[Change], change: Change) -> list[Change]:
    """`edits` of the first text, and one more that is said in the text behind them."""
    before: list[Change] = []
    behind: list[Change] = []
    start, end, head, tail = change.start, change.end, "", ""
    moved = 0  # How many characters the edits so far have added.
    for edit in edits:
        first = edit.start + moved
        last = first + len(edit.text)
        grown = len(edit.text) - (edit.end - edit.start)
        if last < change.start:
            before.append(edit)
            start -= grown
            end -= grown
        elif first > change.end:
            behind.append(edit)
        else:
            if first <= change.start:
                start, head = edit.start, edit.text[: change.start - first]
            if last >= change.end:
                end, tail = edit.end, edit.text[len(edit.text) - (last - change.end) :]
            else:
                end -= grown
        moved += grown
    return [*before, Change(start, end, head + change.text + tail), *behind]
