"""Rebasing a suggestion over what the user did since: agreeing text shortens it, edits elsewhere move it.

The rule: a change that lies apart from every edit moves those behind it. A change inside an edit agrees if it brings the
text nearer to what the edit wants, so that less of it is left; a change that does not is disagreement, and the whole
suggestion is dropped. Whatever is returned, applying it after the change gives what applying the old one would have given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calomel.suggest.planned import Change, Planned, trimmed

# A word that the suggestion has a little further on also agrees, if it is short: whoever types "name" into "self.name".
# Both numbers are those of the Copilot chat extension's rebase of next edits.
MAX_AGREEMENT_OFFSET: Final = 10
MAX_IMPERFECT_LENGTH: Final = 5


def rebase(edits: Sequence[Planned], change: Change, *, max_offset: int = 0) -> tuple[Planned, ...] | None:
    """`edits` after `change`; empty when the change did all of it, None when it disagrees.

    Args:
        edits: sorted, apart from each other, of the text before the change.
        change: one change of that text.
        max_offset: how far inside an insertion short typed text may be found; 0 demands its beginning.
    """
    shift = len(change.inserted) - (change.end - change.start)
    touched = [edit for edit in edits if edit.start <= change.end and edit.end >= change.start]
    before = [edit for edit in edits if edit.end < change.start]
    after = [edit.shifted(shift) for edit in edits if edit.start > change.end]
    if not touched:
        return (*before, *after)
    for at, edit in enumerate(touched):
        if change.start < edit.start or change.end > edit.end:
            continue
        left = _progress(edit, change, max_offset)
        if left is None:
            continue
        sides = (touched[:at], touched[at + 1 :])
        if any(other.end > change.start for other in sides[0]) or any(other.start < change.end for other in sides[1]):
            continue
        return (*before, *sides[0], *left, *(other.shifted(shift) for other in sides[1]), *after)
    return None


def _progress(edit: Planned, change: Change, max_offset: int) -> tuple[Planned, ...] | None:
    """What is left of `edit` after a change within it; None when the change leads away from it."""
    head, tail = change.start - edit.start, change.end - edit.start
    if edit.removed[head:tail] != change.removed:
        return None  # the edit was made for another text
    now = edit.removed[:head] + change.inserted + edit.removed[tail:]
    left = trimmed(Planned(edit.start, edit.start + len(now), edit.text, now))
    if (
        len(left.removed) <= len(edit.removed)
        and len(left.text) <= len(edit.text)
        and len(left.removed) + len(left.text) < len(edit.removed) + len(edit.text)
    ):
        return (left,) if left.text or left.removed else ()
    return _found_inside(edit, change, max_offset)


def _found_inside(edit: Planned, change: Change, max_offset: int) -> tuple[Planned, ...] | None:
    """The two halves of an insertion around short text that was typed at its place and stands a little inside it."""
    typed = change.inserted
    if not max_offset or edit.removed or not typed or len(typed) > MAX_IMPERFECT_LENGTH:
        return None
    at = edit.text.find(typed, 0, max_offset + len(typed))
    if at < 0:
        return None
    behind = edit.start + len(typed)
    halves = (
        Planned(edit.start, edit.start, edit.text[:at], ""),
        Planned(behind, behind, edit.text[at + len(typed) :], ""),
    )
    return tuple(half for half in halves if half.text)
