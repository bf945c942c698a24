"""Where in a file the last edit probably goes on: the same text, the same name, lines that look alike, problems."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rapidfuzz import fuzz

from calomel.prompts.parts import Hunk
from calomel.suggest.edit import minimal_edits, split_lines
from calomel.suggest.question import Diagnostic
from calomel.suggest.recent import standing

_WORD: Final = re.compile(r"[^\W\d]\w*")
_SHORTEST_NAME: Final = 3
_ALIKE: Final = 80.0
_LOCATIONS: Final = 8
_HUNKS: Final = 3
# Lines are compared one by one: in a longer file only those nearest to the cursor.
_COMPARED_LINES: Final = 4000


class Why(StrEnum):
    """What makes a place likely, most likely first."""

    SAME_TEXT = "same_text"
    DIAGNOSTIC = "diagnostic"
    SAME_NAME = "same_name"
    ALIKE = "alike"


_WEIGHTS: Final = {Why.SAME_TEXT: 1.0, Why.DIAGNOSTIC: 0.8, Why.SAME_NAME: 0.6, Why.ALIKE: 0.5}


@dataclass(frozen=True, slots=True)
class Location:
    """A place where the last edit may go on.

    Attributes:
        start: offset of what was found.
        end: where it ends.
        row: its line.
        why: what makes it likely.
        replacement: what the last edit put in the place of the same text; None when that is not known.
    """

    start: int
    end: int
    row: int
    why: Why
    replacement: str | None = None


def continuations(
    text: str, hunks: Sequence[Hunk], cursor: int, diagnostics: Iterable[Diagnostic] = ()
) -> tuple[Location, ...]:
    """Places outside of the last edit itself, likeliest first, then nearest to the cursor; one for each line.

    Args:
        text: the document's.
        hunks: its own last edits, newest last.
        cursor: offset.
        diagnostics: problems that the editor shows.
    """
    lines = _Lines(text)
    row = lines.row(cursor)
    found: list[Location] = []
    for hunk in reversed(standing(text, hunks, None)[-_HUNKS:]):
        for removed, inserted in renames(hunk):
            found += [
                Location(match.start(), match.end(), lines.row(match.start()), Why.SAME_TEXT, inserted)
                for match in re.finditer(rf"\b{re.escape(removed)}\b", text)
            ]
        # A new line is no change of old ones: it tells nothing of lines that look like it.
        if hunk.before.strip():
            found += _alike(lines, hunk, row)
    found += [
        Location(problem.start, problem.end, lines.row(problem.start), Why.DIAGNOSTIC)
        for problem in diagnostics
        if 0 <= problem.start <= problem.end <= len(text)
    ]
    best: dict[int, Location] = {}
    for location in sorted(found, key=lambda place: (-_WEIGHTS[place.why], place.start)):
        best.setdefault(location.row, location)
    below_first = sorted(best.values(), key=lambda place: (-_WEIGHTS[place.why], abs(place.row - row), place.row < row))
    return tuple(below_first[:_LOCATIONS])


def renames(hunk: Hunk) -> tuple[tuple[str, str], ...]:
    """Names that an edit replaced by other names, whole: `old_name` to `new_name`, not `old` to `new`."""
    found: dict[str, str] = {}
    for edit in minimal_edits(hunk.before, 0, len(hunk.before), hunk.after):
        start, end = _whole_word(hunk.before, edit.start, edit.end)
        removed = hunk.before[start:end]
        inserted = hunk.before[start : edit.start] + edit.text + hunk.before[edit.end : end]
        if len(removed) >= _SHORTEST_NAME and _is_name(removed) and _is_name(inserted) and removed != inserted:
            found.setdefault(removed, inserted)
    return tuple(found.items())


def _whole_word(text: str, start: int, end: int) -> tuple[int, int]:
    while start > 0 and _is_letter(text[start - 1]):
        start -= 1
    while end < len(text) and _is_letter(text[end]):
        end += 1
    return start, end


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_name(text: str) -> bool:
    return _WORD.fullmatch(text) is not None


def _alike(lines: _Lines, hunk: Hunk, row: int) -> list[Location]:
    """Lines that use the name before the edited place, or that look as the edited line looked before."""
    before, after = split_lines(hunk.before), split_lines(hunk.after)
    pairs = [(old, new) for old, new in zip(before, after, strict=False) if old.strip() and old != new]
    if not pairs:
        return []
    old, new = pairs[0]
    edits = minimal_edits(old, 0, len(old), new)
    name = _name_before(old, edits[0].start) if edits else None
    low = max(0, row - _COMPARED_LINES // 2)
    found: list[Location] = []
    edited = range(hunk.start_line, hunk.start_line + len(after))
    for at in range(low, min(lines.count, low + _COMPARED_LINES)):
        line = lines.text(at)
        if at in edited or not line.strip() or line == new:
            continue
        start, end = lines.start(at), lines.start(at) + len(line.rstrip("\r\n"))
        if name and re.search(rf"\b{re.escape(name)}\b", line):
            found.append(Location(start, end, at, Why.SAME_NAME))
        elif fuzz.ratio(old.strip(), line.strip(), score_cutoff=_ALIKE):
            found.append(Location(start, end, at, Why.ALIKE))
    return found


def _name_before(line: str, at: int) -> str | None:
    """The name that an edit behind it belongs to: `connect` in `connect(host, |port)`."""
    opening = line.rfind("(", 0, at)
    names = [match.group() for match in _WORD.finditer(line[: opening if opening >= 0 else at])]
    long = [name for name in names if len(name) >= _SHORTEST_NAME]
    return long[-1] if long and opening >= 0 else None


class _Lines:
    """The lines of a text, with their places."""

    def __init__(self, text: str) -> None:
        self._lines = split_lines(text)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    @property
    def count(self) -> int:
        return len(self._lines)

    def text(self, row: int) -> str:
        return self._lines[row]

    def start(self, row: int) -> int:
        return self._starts[row]

    def row(self, offset: int) -> int:
        return max(0, min(bisect_right(self._starts, offset) - 1, len(self._lines) - 1))
