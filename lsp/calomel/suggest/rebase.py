"""Rebasing a suggestion over what the user did since: agreeing text shortens it, edits elsewhere move it.

The rule: a change that lies apart from every edit moves those behind it. A change inside an edit agrees if it brings
the text nearer to what the edit wants, so that less of it is left. A change across several edits agrees if it does
exactly what they want. Any other is disagreement, and the whole suggestion is dropped. Whatever is returned, applying
it after the change gives what applying the old one would have given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calomel.suggest.planned import Change, Planned, edits_of, trimmed
from calomel.suggest.suggestion import TextEdit, apply

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
    # Some editors send whole lines of which a word is new.
    done = trimmed(Planned(change.start, change.end, change.inserted, change.removed))
    if not done.text and not done.removed:
        return tuple(edits)
    shift = len(done.text) - len(done.removed)
    touched = [edit for edit in edits if edit.start <= done.end and edit.end >= done.start]
    before = [edit for edit in edits if edit.end < done.start]
    after = [edit.shifted(shift) for edit in edits if edit.start > done.end]
    if not touched:
        return (*before, *after)
    for at, edit in enumerate(touched):
        left = _progress(edit, done, max_offset)
        if left is None:
            continue
        ahead, behind = touched[:at], touched[at + 1 :]
        if any(other.end > done.start for other in ahead) or any(other.start < done.end for other in behind):
            continue
        return (*before, *ahead, *left, *(other.shifted(shift) for other in behind), *after)
    return (*before, *after) if _does_all(touched, done) else None


def touches(edits: Sequence[Planned], change: Change) -> bool:
    """Whether a change lies within or directly beside one of the edits."""
    return any(edit.start <= change.end and edit.end >= change.start for edit in edits)


def _progress(edit: Planned, done: Planned, max_offset: int) -> tuple[Planned, ...] | None:
    """What is left of `edit` after a change within it; None when the change is not within it or leads away from it."""
    if done.start < edit.start or done.end > edit.end:
        return None
    head, tail = done.start - edit.start, done.end - edit.start
    if edit.removed[head:tail] != done.removed:
        return None  # the edit was made for another text
    now = edit.removed[:head] + done.text + edit.removed[tail:]
    left = trimmed(Planned(edit.start, edit.start + len(now), edit.text, now))
    if (
        len(left.removed) <= len(edit.removed)
        and len(left.text) <= len(edit.text)
        and len(left.removed) + len(left.text) < len(edit.removed) + len(edit.text)
    ):
        return (left,) if left.text or left.removed else ()
    return _found_inside(edit, done, max_offset)


def _found_inside(edit: Planned, done: Planned, max_offset: int) -> tuple[Planned, ...] | None:
    """The two halves of an insertion around short text that was typed at its place and stands a little inside it."""
    typed = done.text
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


def _does_all(touched: Sequence[Planned], done: Planned) -> bool:
    """Whether a change that spans all of `touched` leaves the text that they would leave."""
    if touched[0].start < done.start or touched[-1].end > done.end:
        return False
    inside = [TextEdit(a - done.start, b - done.start, text) for a, b, text in edits_of(touched)]
    fits = all(done.removed[a:b] == edit.removed for (a, b, _), edit in zip(inside, touched, strict=True))
    return fits and apply(done.removed, inside) == done.text
