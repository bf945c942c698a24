"""What the user did to a document recently, in offsets of its current text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from calomel.prompts.parts import Hunk, line_feeds
from calomel.selectivity.intent import words_changed
from calomel.selectivity.proposal import Recent
from calomel.workspace.documents import TextChange
from calomel.workspace.edits import edits_of, minimal_edits, place_of

# Edits that are considered; older ones belonged to something else.
_EDITS: Final = 16


@dataclass(frozen=True, slots=True)
class EditStep:
    r"""One of the last edits of a document: `hunk`, found at `start` of the text after it; all line ends are \n."""

    hunk: Hunk
    start: int


@dataclass(frozen=True, slots=True)
class Course:
    """What became of the last edits.

    Attributes:
        standing: those whose text is still there, or which are of other files; oldest first.
        withdrawn: those of the document that were undone.
        steps: those of the document that led to its text, oldest first, whether undone later or not.
        back: the newest of them only undid others.
    """

    standing: tuple[Hunk, ...]
    withdrawn: tuple[Hunk, ...]
    steps: tuple[EditStep, ...]
    back: bool


def standing(text: str, hunks: Sequence[Hunk], path: str | None) -> tuple[Hunk, ...]:
    """The last edits that suggestions may continue; none if the newest only undid others.

    Args:
        text: of the document as it is now.
        hunks: the last edits, oldest first.
        path: of the document, as in hunks; None when all are its own.
    """
    steps = course(text, tuple(hunks), path)
    return () if steps.back else steps.standing


@lru_cache(maxsize=8)
def course(text: str, hunks: tuple[Hunk, ...], path: str | None) -> Course:
    """Replay the text backwards, edit by edit: edits between two identical states cancel each other out."""
    last = hunks[-_EDITS:]
    own = [at for at, hunk in enumerate(last) if path is None or hunk.path == path]
    gone: set[int] = set()
    # Newest first: the index of an edit, and the text after it.
    made: list[tuple[int, str]] = []
    steps: list[EditStep] = []
    now = line_feeds(text)
    for at in reversed(own):
        hunk = last[at]
        before, after = line_feeds(hunk.before), line_feeds(hunk.after)
        place = place_of(now, hunk.start_line, after)
        if place is not None:
            made.append((at, now))
            steps.append(EditStep(hunk, place))
            now = now[:place] + before + now[place + len(after) :]
        elif place_of(now, hunk.start_line, before) is not None:
            gone.add(at)
    # For each remaining state of the text, the number of edits up to it.
    way = {now: 0}
    stand: list[int] = []
    for at, state in reversed(made):
        stand.append(at)
        back = way.get(state)
        if back is not None:
            gone.update(each for each in own if stand[back] <= each <= at)
            del stand[back:]
            way = {key: count for key, count in way.items() if count <= back}
        way[state] = len(stand)
    return Course(
        standing=tuple(hunk for at, hunk in enumerate(last) if at not in gone),
        withdrawn=tuple(last[at] for at in sorted(gone)),
        steps=tuple(reversed(steps)),
        back=bool(made) and made[0][0] in gone and made[0][0] == len(last) - 1,
    )


_REMEMBERED: Final = 16
_SECONDS: Final = 60.0
# Longer changes are pastes or formatters, which tell nothing of what the user wants next.
_LONGEST: Final = 2000


@dataclass(slots=True)
class _Done:
    start: int
    end: int
    removed: str
    inserted: str
    when: float


class RecentEdits:
    """The last edits of one document: consecutive keystrokes are one edit, and their offsets follow the text."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._done: deque[_Done] = deque(maxlen=_REMEMBERED)
        self.last_at: float | None = None

    def changed(self, change: TextChange, now: float) -> bool:
        """Take in one change, made at `now`; whether it continues the last edit."""
        self.last_at = now
        last = self._done[-1] if self._done else None
        joined = last is not None and _join(last, change, now)
        for done in list(self._done)[: -1 if joined else None]:
            if not _move(done, change):
                self._done.remove(done)
        if not joined and max(len(change.removed), len(change.inserted)) <= _LONGEST:
            end = change.start + len(change.inserted)
            self._done.append(_Done(change.start, end, change.removed, change.inserted, now))
        return joined

    def recent(self) -> tuple[Recent, ...]:
        """The edits that are recent enough, oldest first."""
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


def _join(last: _Done, change: TextChange, now: float) -> bool:
    """Whether `change` continues `last`; if so, it is merged into it."""
    length = change.end - change.start
    if change.start == last.end and not length and not (last.removed and not last.inserted):
        last.inserted += change.inserted  # more typing
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


def _move(done: _Done, change: TextChange) -> bool:
    """Shift an older edit by a newer change; False if they overlap, and the edit is dropped."""
    if change.end <= done.start:
        by = len(change.inserted) - (change.end - change.start)
        done.start += by
        done.end += by
        return True
    return change.start >= done.end


@dataclass(frozen=True, slots=True)
class Past:
    """What the last edits of a document did, word by word.

    Attributes:
        edited: what led to the current text, in its offsets, oldest first.
        withdrawn: pairs of old and new text of edits that were undone, without those that a standing edit made, too.
    """

    edited: tuple[Recent, ...] = ()
    withdrawn: frozenset[tuple[str, str]] = frozenset()


@lru_cache(maxsize=8)
def past_of(text: str, hunks: tuple[Hunk, ...], path: str | None) -> Past:
    """The past of a document; arguments as in `calomel.suggest.recent.course`."""
    steps = course(text, hunks, path)
    own = [hunk for hunk in steps.standing if path is None or hunk.path == path]
    withdrawn, stands = (
        {(each.removed, each.inserted) for hunk in some for each in _changed(hunk)} for some in (steps.withdrawn, own)
    )
    done: list[Recent] = []
    for step in steps.steps:
        made = [
            Recent(step.start + each.start, step.start + each.end, each.removed, each.inserted)
            for each in _changed(step.hunk)
        ]
        # Each piece has offsets in the text after the whole edit, so the last one moves first.
        done = [moved for each in done if (moved := _behind(each, made)) is not None] + made
    # Offsets of line ends, counted as if each were one character.
    ends = [match.start() - before for before, match in enumerate(re.finditer("\r\n", text))]
    if ends:
        done = [
            replace(each, start=each.start + bisect_left(ends, each.start), end=each.end + bisect_left(ends, each.end))
            for each in done
        ]
    return Past(
        tuple(done),
        frozenset((gone.strip(), came.strip()) for gone, came in withdrawn - stands if gone.strip() != came.strip()),
    )


def _behind(done: Recent, made: Sequence[Recent]) -> Recent | None:
    """An older edit in offsets of the text after newer ones; None if they changed a part of what it wrote.

    A newer one that replaced exactly that text is merged: reverting both brings back what was there first.
    """
    start, end = done.start, done.end
    for each in made:
        if start < end and each.start == start and len(each.removed) == end - start:
            end, done = each.end, replace(done, inserted=each.inserted)
            continue
        before = each.start + len(each.removed)
        if before <= start and (start < end or before < start or not each.inserted):
            by = len(each.inserted) - len(each.removed)
            start, end = start + by, end + by
        elif each.start < end:
            return None
    return replace(done, start=start, end=end)


@lru_cache(maxsize=256)
def _changed(hunk: Hunk) -> tuple[Recent, ...]:
    """What an edit changed, in offsets of the hunk's text after it."""
    before, after = line_feeds(hunk.before), line_feeds(hunk.after)
    if max(len(before), len(after)) > _LONGEST:
        return ()
    changes: list[Recent] = []
    by = 0
    for start, end, new in words_changed(before, edits_of(minimal_edits(before, 0, len(before), after))):
        changes.append(Recent(start + by, start + by + len(new), before[start:end], new))
        by += len(new) - (end - start)
    return tuple(changes)
