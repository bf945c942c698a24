"""Where in a file the last edit probably goes on: the same text, the same name, lines that look alike, problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rapidfuzz import fuzz

from calomel.prompts.parts import Hunk
from calomel.suggest.drafts.evidence import LineEdit, evidence
from calomel.suggest.drafts.rename import renamed_words
from calomel.suggest.drafts.text import Rows, changes, tokens, whole, words
from calomel.suggest.question import Diagnostic
from calomel.suggest.recent import standing

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
    """

    start: int
    end: int
    row: int
    why: Why


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
    rows = Rows(text)
    row = rows.row(cursor)
    # A new line is no change of old ones: it tells nothing of lines that look like it.
    found = [
        place
        for edit in evidence(rows, standing(text, hunks, None)[-_HUNKS:]).edits[:_HUNKS]
        for place in (*_renamed(rows, edit), *_alike(rows, edit, row))
    ]
    found += [
        Location(problem.start, problem.end, rows.row(problem.start), Why.DIAGNOSTIC)
        for problem in diagnostics
        if 0 <= problem.start <= problem.end <= len(text)
    ]
    best: dict[int, Location] = {}
    for location in sorted(found, key=lambda place: (-_WEIGHTS[place.why], place.start)):
        best.setdefault(location.row, location)
    below_first = sorted(best.values(), key=lambda place: (-_WEIGHTS[place.why], abs(place.row - row), place.row < row))
    return tuple(below_first[:_LOCATIONS])


def _renamed(rows: Rows, edit: LineEdit) -> Iterator[Location]:
    """Where names stand that an edit replaced by others."""
    for old, _ in renamed_words(edit.old, edit.new):
        for match in rows.uses(old) if len(old) >= _SHORTEST_NAME else ():
            yield Location(match.start(), match.end(), rows.row(match.start()), Why.SAME_TEXT)


def _alike(rows: Rows, edit: LineEdit, row: int) -> Iterator[Location]:
    """Lines that use the name before the edited place, or that look as the edited line looked before."""
    name = _name_before(edit)
    low = max(0, row - _COMPARED_LINES // 2)
    for at, line in enumerate(rows.lines[low : low + _COMPARED_LINES], low):
        if at == edit.row or not line.strip() or line == edit.new:
            continue
        if name and whole(name).search(line):
            yield Location(rows.start(at), rows.end(at), at, Why.SAME_NAME)
        elif fuzz.ratio(edit.old.strip(), line.strip(), score_cutoff=_ALIKE):
            yield Location(rows.start(at), rows.end(at), at, Why.ALIKE)


def _name_before(edit: LineEdit) -> str | None:
    """The name whose list an edit is in: `connect` in `connect(host, |port)`."""
    old = tokens(edit.old)
    first = next(iter(changes(old, tokens(edit.new)))).first
    called, opening, _ = "".join(token.text for token in old[:first]).rpartition("(")
    long = [name for name in words(called) if len(name) >= _SHORTEST_NAME]
    return long[-1] if long and opening else None
