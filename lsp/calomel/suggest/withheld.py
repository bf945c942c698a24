"""One suggestion that was held back, followed until it is known whether the user wrote it without being asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from calomel.suggest.outcome import Outcome
from calomel.suggest.planned import Change, Planned, edits_of
from calomel.suggest.suggestion import TextEdit, apply

# A place that has grown beyond this is no place any more.
_LARGEST_PLACE: Final = 8_000


@dataclass(slots=True)
class Place:
    """A stretch of text, and what a suggestion wants to stand there.

    Attributes:
        start: where it begins.
        now: what stands there.
        wanted: what would stand there with the suggestion.
        inserts: the suggestion only inserts, at one place: whatever follows there may be anything.
    """

    start: int
    now: str
    wanted: str
    inserts: bool

    @classmethod
    def of(cls, text: str, edits: Sequence[Planned]) -> Self:
        """From the first of `edits`, which are of `text` and at least one, to the last."""
        start, end = edits[0].start, edits[-1].end
        inside = [TextEdit(a - start, b - start, new) for a, b, new in edits_of(edits)]
        now = text[start:end]
        return cls(start, now, apply(now, inside), inserts=len(edits) == 1 and not now)

    @property
    def holds(self) -> bool:
        """Whether what is wanted stands there."""
        return self.now.startswith(self.wanted) if self.inserts else self.now == self.wanted

    @property
    def is_lost(self) -> bool:
        """Whether it has grown beyond measure."""
        return max(len(self.now), len(self.wanted)) > _LARGEST_PLACE

    def changed(self, change: Change) -> bool:
        """Go along with a change; whether it touched the place, which then spans all that the change replaced."""
        low, high = self.start, self.start + len(self.now)
        if change.start > high:
            return False
        if change.end < low:
            self.start += len(change.inserted) - len(change.removed)
            return False
        if change.start < low or change.end > high:
            left, right = max(0, low - change.start), max(0, change.end - high)
            before, after = change.removed[:left], change.removed[len(change.removed) - right :]
            self.start -= left
            self.now = before + self.now + after
            self.wanted = before + self.wanted + after
        at = change.start - self.start
        self.now = self.now[:at] + change.inserted + self.now[at + len(change.removed) :]
        return True

    def same(self, other: Place, text: str) -> bool:
        """Whether two places of `text` want it to become the same."""
        low = min(self.start, other.start)
        high = max(self.start + len(self.now), other.start + len(other.now))
        return self._whole(text, low, high) == other._whole(text, low, high)

    def _whole(self, text: str, low: int, high: int) -> str:
        return text[low : self.start] + self.wanted + text[self.start + len(self.now) : high]


@dataclass(slots=True)
class Withheld:
    """What is known of it.

    Attributes:
        outcome: as it is told; its reason is why it was held back.
        place: where it belongs.
        left: what is left of its edits, for as long as nobody can tell whether it would have been noticed.
        since: seconds of the clock at which it would have been shown.
        keys: changes that the user typed into the document since.
        noticed: it would have been there for long enough.
        told: that it was withheld.
        typed: the user wrote it.
        is_over: nothing that comes can change what is known of it.
    """

    outcome: Outcome
    place: Place
    left: tuple[Planned, ...]
    since: float
    keys: int = 0
    noticed: bool = False
    told: bool = False
    typed: bool = False
    is_over: bool = False
