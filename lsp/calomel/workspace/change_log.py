"""The latest changes of one document, with places that follow the text, and whether a change takes others back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from calomel.workspace.documents import TextChange

# Enough for a typed line or two; filters look at the last few.
_KEPT: Final = 64
# A change that takes back more than this many others is no undo but a rewrite.
_UNDO_DEPTH: Final = 64


class Origin(StrEnum):
    """Where a change came from."""

    TYPED = "typed"
    PREDICTED = "predicted"
    UNDO = "undo"
    REDO = "redo"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class EditRecord:
    """A change, or a run of typed ones.

    Attributes:
        start: where it is in the current text.
        inserted: what it put there; `start + len(inserted)` may be wrong where later changes went into it.
        removed: what stood there before.
        at: seconds of the clock.
        intact: whether `inserted` still stands there unchanged.
    """

    start: int
    inserted: str
    removed: str
    at: float
    origin: Origin
    intact: bool = True


class ChangeLog:
    """Bounded; oldest changes fall out."""

    def __init__(self) -> None:
        self._records: list[EditRecord] = []
        # What single changes did, newest last, for the recognition of undo: typed runs are not joined here.
        self._steps: list[TextChange] = []
        self._undone: list[TextChange] = []

    def __iter__(self) -> Iterator[EditRecord]:
        """Newest first."""
        return reversed(self._records)

    def classify(self, change: TextChange, origin: Origin) -> Origin:
        """UNDO or REDO when the change takes back the latest ones or brings an undone one back; else `origin`.

        A deleted single character is a correction, not an undo: people type it.
        """
        if origin is not Origin.TYPED or (not change.inserted and len(change.removed) <= 1):
            return origin
        if self._undone and _inverse(change, self._undone[-1]):
            return Origin.REDO
        return Origin.UNDO if self._takes_back(change) else origin

    def add(self, change: TextChange, origin: Origin, now: float) -> None:
        """Note a change that was classified."""
        self._records = [_moved(record, change) for record in self._records]
        newest = self._records[-1] if self._records else None
        joined = None if newest is None else _joined(newest, change, origin, now)
        if joined is not None:
            self._records[-1] = joined
        else:
            self._records.append(EditRecord(change.start, change.inserted, change.removed, now, origin))
        del self._records[:-_KEPT]
        self._steps.append(change)
        del self._steps[:-_UNDO_DEPTH]
        if origin is Origin.UNDO:
            self._undone.append(change)
            del self._undone[:-_UNDO_DEPTH]
        elif origin is Origin.REDO:
            self._undone.pop()
        else:
            self._undone.clear()

    def _takes_back(self, change: TextChange) -> bool:
        """Whether some of the latest changes, played backwards, turn what is removed into what is inserted."""
        text, start = change.removed, change.start
        for step in reversed(self._steps):
            low, high = step.start - start, step.start - start + len(step.inserted)
            if low < 0 or high > len(text) or text[low:high] != step.inserted:
                return False
            text = text[:low] + step.removed + text[high:]
            if text == change.inserted:
                return True
        return False


def _inverse(one: TextChange, other: TextChange) -> bool:
    return one.start == other.start and one.inserted == other.removed and one.removed == other.inserted


def _moved(record: EditRecord, change: TextChange) -> EditRecord:
    """The record where the change has put it."""
    end = record.start + len(record.inserted)
    if change.start >= end and change.end > record.start:
        return record
    if change.end <= record.start and change.start < end:
        return replace(record, start=record.start + len(change.inserted) - len(change.removed))
    if change.start >= end:
        return record
    return replace(record, start=min(record.start, change.start), intact=False)


def _joined(newest: EditRecord, change: TextChange, origin: Origin, now: float) -> EditRecord | None:
    """A run of typing as one record: text typed at its end, or its last characters deleted again."""
    if origin is not newest.origin or origin not in {Origin.TYPED, Origin.PREDICTED}:
        return None
    end = newest.start + len(newest.inserted)
    if newest.intact and change.start == end and not change.removed:
        return replace(newest, inserted=newest.inserted + change.inserted, at=now)
    return None
