"""Counts of what became of suggestions, of all and of groups of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from calomel.suggest.stats.story import Story


@dataclass(slots=True)
class Figures:
    """Counts of one group. What was shown is `accepted` to `open`; each suggestion is counted once.

    Attributes:
        accepted: taken whole.
        partly: taken in part.
        rejected: dismissed.
        ignored: left alone, or typed against.
        typed: shown, and then written by hand.
        superseded: a newer one took its place.
        open: nothing is known but that it was shown.
        withheld: held back.
        withheld_typed: held back, and then written by hand.
        saved: characters that the user did not have to type.
    """

    accepted: int = 0
    partly: int = 0
    rejected: int = 0
    ignored: int = 0
    typed: int = 0
    superseded: int = 0
    open: int = 0
    withheld: int = 0
    withheld_typed: int = 0
    saved: int = 0

    @property
    def shown(self) -> int:
        """How many the user saw."""
        return sum((self.taken, self.rejected, self.ignored, self.typed, self.superseded, self.open))

    @property
    def taken(self) -> int:
        """How many of them the user took, in whole or in part."""
        return self.accepted + self.partly

    def add(self, story: Story) -> None:
        """Count one."""
        self.saved += story.saved
        if story.shown:
            name = "partly" if story.fate == "partly_accepted" else story.fate
            setattr(self, name, getattr(self, name) + 1)
        else:
            self.withheld += 1
            self.withheld_typed += story.fate == "typed"


def total(found: Iterable[Story]) -> Figures:
    """All in one."""
    figures = Figures()
    for story in found:
        figures.add(story)
    return figures


def grouped(found: Iterable[Story], name: Callable[[Story], str]) -> dict[str, Figures]:
    """By name, in the order of the names."""
    groups: dict[str, Figures] = {}
    for story in found:
        groups.setdefault(name(story) or "unknown", Figures()).add(story)
    return dict(sorted(groups.items()))


def day_of(story: Story) -> str:
    """The day on which it began, where this machine stands: YYYY-MM-DD."""
    try:
        return time.strftime("%Y-%m-%d", time.localtime(story.time))
    except (OverflowError, ValueError, OSError):
        return "unknown"
