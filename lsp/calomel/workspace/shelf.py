"""The text of files: of open documents as it is typed, of others as the index has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from calomel.workspace.documents import Document
from calomel.workspace.index import Index

# How far a passage is looked for when lines were added or removed above it.
_REACH: Final = 300
# A passage of which so many lines are still there is still the passage.
_STILL: Final = 0.6
_TELLING: Final = 8


class Passage(NamedTuple):
    """Lines of a file as they are now; `name` is that of prompts."""

    name: str
    start: int
    lines: list[str]


class Shelf:
    """Reads passages."""

    def __init__(self, index: Index, documents: Mapping[str, Document]) -> None:
        """`documents` are the open ones by absolute path, or by uri where they have none."""
        self._index = index
        self._documents = documents

    def read(self, path: str, start: int, end: int, *, live: bool) -> Passage | None:
        """Some lines. `live`: the numbers are those of the open document, if it is open; else those of the index."""
        document = self._documents.get(path)
        if document is not None and live:
            name = document.path or path.rpartition("/")[2]
            return Passage(name, start, document.lines(start, end)) if start < document.line_count else None
        place = self._index.place(path)
        if place is None:
            return None
        lines = place.segment.lines(place.number, start, end)
        if not lines:
            return None
        if document is None:
            return Passage(place.file.name, start, lines)
        at = _found_again(document, start, lines)
        return None if at is None else Passage(place.file.name, at, document.lines(at, at + len(lines)))


def _found_again(document: Document, start: int, lines: list[str]) -> int | None:
    """Where the lines stand in the document now."""
    if _alike(document.lines(start, start + len(lines)), lines):
        return start
    telling = next((at for at, line in enumerate(lines) if len(line.strip()) >= _TELLING), None)
    if telling is None:
        return None
    wanted = lines[telling].rstrip()
    first = max(0, start + telling - _REACH)
    around = document.lines(first, start + telling + _REACH)
    places = [first + at - telling for at, line in enumerate(around) if line.rstrip() == wanted]
    for at in sorted(places, key=lambda place: abs(place - start)):
        if at >= 0 and _alike(document.lines(at, at + len(lines)), lines):
            return at
    return None


def _alike(found: list[str], wanted: list[str]) -> bool:
    same = sum(one.rstrip() == other.rstrip() for one, other in zip(found, wanted, strict=False))
    return same >= _STILL * len(wanted)
