"""Which of the last edits still stand: what was undone, reverted or reloaded away is no intent any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from calomel.prompts.parts import Hunk

# Edits that are looked at: what was done before them was another matter.
_EDITS: Final = 16


@dataclass(frozen=True, slots=True)
class Step:
    r"""One of the last edits of a document: `hunk`, found at `start` of the text behind it, line ends as \n alone."""

    hunk: Hunk
    start: int


@dataclass(frozen=True, slots=True)
class Course:
    """What became of the last edits.

    Attributes:
        standing: those whose text is there, or which are of other files; oldest first.
        withdrawn: those of the document that were taken back.
        steps: those of the document that led to its text, oldest first, whether taken back later or not.
        back: the newest of them only took others back.
    """

    standing: tuple[Hunk, ...]
    withdrawn: tuple[Hunk, ...]
    steps: tuple[Step, ...]
    back: bool


def standing(text: str, hunks: Sequence[Hunk], path: str | None) -> tuple[Hunk, ...]:
    """The last edits that are to be gone on with; none when the newest only took others back.

    Args:
        text: of the document as it is now.
        hunks: the last edits, oldest first.
        path: of the document, as hunks name it; None when all are its own.
    """
    found = course(text, tuple(hunks), path)
    return () if found.back else found.standing


@lru_cache(maxsize=8)
def course(text: str, hunks: tuple[Hunk, ...], path: str | None) -> Course:
    """The text is played backwards, edit by edit: between two moments at which it was the same, nothing was done."""
    last = hunks[-_EDITS:]
    own = [at for at, hunk in enumerate(last) if path is None or hunk.path == path]
    gone: set[int] = set()
    # Newest first: the number of an edit, and what it led to.
    made: list[tuple[int, str]] = []
    steps: list[Step] = []
    now = plain(text)
    for at in reversed(own):
        hunk = last[at]
        before, after = plain(hunk.before), plain(hunk.after)
        place = place_of(now, hunk.start_line, after)
        if place is not None:
            made.append((at, now))
            steps.append(Step(hunk, place))
            now = now[:place] + before + now[place + len(after) :]
        elif place_of(now, hunk.start_line, before) is not None:
            gone.add(at)
    # For each text on the way that is left, the edits up to it.
    way = {now: 0}
    stand: list[int] = []
    for at, state in reversed(made):
        stand.append(at)
        back = way.get(state)
        if back is not None:
            gone.update(each for each in own if stand[back] <= each <= at)
            del stand[back:]
            way = {known: count for known, count in way.items() if count <= back}
        way[state] = len(stand)
    return Course(
        standing=tuple(hunk for at, hunk in enumerate(last) if at not in gone),
        withdrawn=tuple(last[at] for at in sorted(gone)),
        steps=tuple(reversed(steps)),
        back=bool(made) and made[0][0] in gone and made[0][0] == len(last) - 1,
    )


def place_of(text: str, row: int, lines: str) -> int | None:
    """Where `lines` stand: of several places the one nearest to line `row`; None when they do not."""
    if lines and (only := text.find(lines)) == text.rfind(lines):
        return None if only < 0 else only
    *above, below = text.split("\n", row)
    wanted = len(text) - len(below) if len(above) == row else len(text)
    if not lines:
        return wanted
    places = [at for at in (text.rfind(lines, 0, wanted + len(lines)), text.find(lines, wanted)) if at >= 0]
    return min(places, key=lambda at: abs(at - wanted), default=None)


def plain(text: str) -> str:
    r"""A text whose lines end in \n alone."""
    return text.replace("\r\n", "\n")
