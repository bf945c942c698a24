"""Suggestions that the user rejected: they do not come back before the text around them has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.suggest.diff import split_lines
from calomel.suggest.planned import Change, Planned, edits_of
from calomel.suggest.rebase import rebase, touches
from calomel.suggest.suggestion import TextEdit, apply

# Copilot remembers as many.
_REMEMBERED: Final = 20


@dataclass(slots=True)
class _Rejection:
    """One of them.

    Attributes:
        edits: as they are now, rebased; None once something else was typed at their place.
        outcome: the lines that it would have made, with the lines around them.
        low: where the lines around it begin.
        high: where they end.
    """

    uri: str
    edits: tuple[Planned, ...] | None
    outcome: tuple[str, ...]
    low: int
    high: int


class Rejections:
    """The last rejected suggestions, each moving along with its text."""

    def __init__(self) -> None:
        self._known: list[_Rejection] = []

    def add(self, uri: str, text: str, edits: Sequence[Planned]) -> None:
        """Remember that `edits` of `text` were rejected."""
        if not edits or not all(edit.fits(text) for edit in edits):
            return
        low, high = _surroundings(text, edits)
        self._known.append(_Rejection(uri, tuple(edits), _outcome(text, edits), low, high))
        del self._known[:-_REMEMBERED]

    def has(self, uri: str, text: str, edits: Sequence[Planned]) -> bool:
        """Whether these edits of `text` are what the user rejected here."""
        if not edits:
            return False
        outcome: tuple[str, ...] | None = None
        for known in self._known:
            if known.uri != uri or not known.low <= edits[0].start <= known.high:
                continue
            if known.edits is not None and tuple(known.edits) == tuple(edits):
                return True
            outcome = outcome or _outcome(text, edits)
            if known.outcome == outcome:
                return True
        return False

    def changed(self, uri: str, change: Change) -> None:
        """Move along with one change of the text."""
        shift = len(change.inserted) - (change.end - change.start)
        for known in self._known:
            if known.uri != uri:
                continue
            if known.edits is not None:
                left = rebase(known.edits, change)
                apart = change.start > known.high or change.end < known.low
                # Something else that changes on its lines may make the same idea a good one.
                keeps = apart or touches(known.edits, change)
                known.edits = (left or None) if keeps else None
            if change.end <= known.low and change.start < known.low:
                known.low += shift
                known.high += shift
            elif change.start <= known.high:
                known.low = min(known.low, change.start)
                known.high = max(known.high + shift, change.start + len(change.inserted))

    def closed(self, uri: str) -> None:
        """Forget a document."""
        self._known = [known for known in self._known if known.uri != uri]


def _surroundings(text: str, edits: Sequence[Planned]) -> tuple[int, int]:
    """From the beginning of the line before the first edit's to the end of the line behind the last one's."""
    low = _line_start(text, edits[0].start)
    low = _line_start(text, max(0, low - 1)) if low else 0
    if low and text[low - 1 : low + 1] == "\r\n":
        low = _line_start(text, low - 1)
    high = _line_end(text, edits[-1].end)
    if high < len(text):
        behind = high + (2 if text[high : high + 2] == "\r\n" else 1)
        high = _line_end(text, behind)
    return low, high


def _outcome(text: str, edits: Sequence[Planned]) -> tuple[str, ...]:
    """The lines that the edits make, and the nearest line on each side that is not blank."""
    low, high = _line_start(text, edits[0].start), _line_end(text, edits[-1].end)
    made = apply(text[low:high], [TextEdit(a - low, b - low, new) for a, b, new in edits_of(edits)])
    above = next((line.strip() for line in reversed(split_lines(text[max(0, low - 400) : low])) if line.strip()), "")
    below = next((line.strip() for line in split_lines(text[high : high + 400]) if line.strip()), "")
    return above, made.strip(), below


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def _line_end(text: str, offset: int) -> int:
    ends = [at for at in (text.find("\n", offset), text.find("\r", offset)) if at >= 0]
    return min(ends, default=len(text))
