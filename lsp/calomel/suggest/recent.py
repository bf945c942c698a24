"""What the user did to a document in the last seconds, in places of the text as it is now."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from calomel.prompts.parts import Hunk
from calomel.selectivity.proposal import Recent
from calomel.suggest.diff import minimal_edits
from calomel.suggest.planned import Change, trimmed
from calomel.suggest.standing import place_of

_REMEMBERED: Final = 16
_SECONDS: Final = 60.0
# Longer texts are pastes and formatters: what they did is no wish of a moment.
_LONGEST: Final = 2000
# Edits of a history.
_EDITS: Final = 16


@dataclass(slots=True)
class _Done:
    start: int
    end: int
    removed: str
    inserted: str
    when: float


class RecentEdits:
    """The last edits of one document: keystrokes in a row are one edit, and each moves along with the text."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._done: deque[_Done] = deque(maxlen=_REMEMBERED)
        self.last_at: float | None = None

    def changed(self, change: Change) -> None:
        """Take in one change."""
        now = self._clock()
        self.last_at = now
        last = self._done[-1] if self._done else None
        joined = last is not None and _join(last, change, now)
        for done in list(self._done)[: -1 if joined else None]:
            if not _move(done, change):
                self._done.remove(done)
        if not joined and max(len(change.removed), len(change.inserted)) <= _LONGEST:
            end = change.start + len(change.inserted)
            self._done.append(_Done(change.start, end, change.removed, change.inserted, now))

    def recent(self) -> tuple[Recent, ...]:
        """What is not too long ago, oldest first."""
        since = self._clock() - _SECONDS
        return tuple(
            Recent(done.start, done.end, done.removed, done.inserted)
            for done in self._done
            if done.when >= since and (done.removed or done.inserted)
        )

    @property
    def age(self) -> float | None:
        """Seconds since the last change; None before the first."""
        return None if self.last_at is None else self._clock() - self.last_at


def _join(last: _Done, change: Change, now: float) -> bool:
    """Whether `change` goes on with `last`, which takes it in then."""
    length = change.end - change.start
    if change.start == last.end and not length and not (last.removed and not last.inserted):
        last.inserted += change.inserted  # typing on
    elif last.inserted and last.start <= change.start and change.end <= last.end:
        head = change.start - last.start
        last.inserted = last.inserted[:head] + change.inserted + last.inserted[head + length :]
    elif not last.inserted and not change.inserted and change.end == last.start:
        last.removed = change.removed + last.removed  # backspace after backspace
        last.start = change.start
    elif not last.inserted and not change.inserted and change.start == last.start:
        last.removed += change.removed  # delete after delete
    else:
        return False
    last.end = last.start + len(last.inserted)
    last.when = now
    return True


def _move(done: _Done, change: Change) -> bool:
    """Move an older edit over a newer change; False when they overlap, which ends it."""
    if change.end <= done.start:
        by = len(change.inserted) - (change.end - change.start)
        done.start += by
        done.end += by
        return True
    return change.start >= done.end


def done_by(text: str, hunks: Sequence[Hunk]) -> tuple[Recent, ...]:
    """What the last of `hunks`, edits of one file, did, oldest first; those that cannot be found in it are left out."""
    found: list[Recent] = []
    for hunk in hunks[-_EDITS:]:
        at = place_of(text, hunk.start_line, hunk.after)
        if at is None or len(hunk.before) > _LONGEST or len(hunk.after) > _LONGEST:
            continue
        for edit in minimal_edits(hunk.before, 0, len(hunk.before), hunk.after):
            start, _, inserted, removed = trimmed(edit)
            found.append(Recent(at + start, at + start + len(inserted), removed, inserted))
            # Those behind it in the same hunk have been moved by it.
            at += len(inserted) - len(removed)
    return tuple(found)
