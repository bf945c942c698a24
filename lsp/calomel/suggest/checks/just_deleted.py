"""Suggestions that undo what the user has just done."""

from __future__ import annotations

from collections.abc import Sequence

from calomel.selectivity.proposal import Recent
from calomel.suggest.planned import Planned


def brings_back(edits: Sequence[Planned], recent: Sequence[Recent]) -> bool:
    """Whether an insertion begins with what was deleted at its place, or the whole of it is part of what was."""
    for edit in edits:
        new = edit.text.strip()
        for done in recent:
            gone = done.removed.strip()
            if not new or not gone or done.inserted or not edit.start <= done.start <= edit.end:
                continue
            if not edit.removed and (new.startswith(gone) or gone.startswith(new)):
                return True
    return False


def takes_back(edits: Sequence[Planned], recent: Sequence[Recent]) -> bool:
    """Whether an edit only deletes, and deletes what was just written, or exactly reverses a replacement."""
    for edit in edits:
        for done in recent:
            inside = done.start <= edit.start and edit.end <= done.end
            if not edit.text and edit.removed and inside:
                return True
            if done.removed and (edit.start, edit.end) == (done.start, done.end) and edit.text == done.removed:
                return True
    return False
