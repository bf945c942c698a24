"""The suggestions of a replay as columns, so that every family of figures takes the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calomel.replay.opportunity import LogResult, Opportunity, Shown

# A person saw these and decided: all others had no chance, or are reported apart.
JUDGED = frozenset({"accepted", "partly", "rejected"})


@dataclass(frozen=True, slots=True)
class Offers:
    """All opportunities of ours, then all offers of the recorded assistants.

    Attributes:
        items: ours, then theirs.
        own: how many are ours.
        minutes: in which people typed, of all logs together.
        typed: characters that the people typed.
    """

    items: tuple[Opportunity, ...]
    own: int
    minutes: float
    typed: int

    @property
    def clusters(self) -> list[tuple[str, int]]:
        """The minute of the log that each item lies in."""
        return [(item.log, int(item.time // 60)) for item in self.items]

    def flags(self, of: Sequence[bool]) -> list[float]:
        """For each of ours, then zeros for theirs."""
        return [*map(float, of), *([0.0] * (len(self.items) - self.own))]

    @property
    def ours(self) -> tuple[Opportunity, ...]:
        """Our opportunities."""
        return self.items[: self.own]

    @property
    def theirs(self) -> tuple[Opportunity, ...]:
        """Offers of the recorded assistants."""
        return self.items[self.own :]


def offers_of(results: Sequence[LogResult]) -> Offers:
    """The opportunities of all logs, in order."""
    own = tuple(item for result in results for item in result.opportunities)
    theirs = tuple(item for result in results for item in result.recorded)
    return Offers(
        (*own, *theirs),
        len(own),
        sum(result.active_minutes for result in results),
        sum(result.typed_characters for result in results),
    )


def judged(item: Opportunity) -> Shown | None:
    """The suggestion, when a person could have decided about it, whether the gate let it through or not."""
    found = item.candidate
    return found if found is not None and found.outcome in JUDGED else None


def seen(item: Opportunity) -> Shown | None:
    """The suggestion, when it was on the screen and long enough to count."""
    return judged(item) if item.shown else None
