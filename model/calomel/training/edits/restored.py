"""Stories told backwards: what a file has is taken out, and the story puts it in again. So all of it is real code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from calomel.training.edits.source import Source
from calomel.training.edits.story import Change, Story, story_of


def restored(kind: str, source: Source, removals: Sequence[Change]) -> Story | None:
    """The story that takes edits of the file back, in the order given; its end is the file as it is.

    None where they overlap or touch, or the file does not parse without them; and as for `story_of`.
    """
    if not removals:
        return None
    by_place = sorted(removals, key=lambda edit: (edit.start, edit.end))
    if any(one.end >= other.start for one, other in pairwise(by_place)):
        return None
    text = source.text
    for edit in reversed(by_place):
        text = edit.apply(text)
    back = {}
    moved = 0
    for edit in by_place:
        start = edit.start + moved
        back[edit] = Change(start, start + len(edit.text), source.text[edit.start : edit.end])
        moved += len(edit.text) - (edit.end - edit.start)
    return story_of(kind, source.with_text(text), [back[edit] for edit in removals])
