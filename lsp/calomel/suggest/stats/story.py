"""One suggestion's life, put together from its lines in the outcome log."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from calomel.suggest.outcome_record import OutcomeRecord
from calomel.suggest.trigger import Trigger

Fate = Literal["accepted", "partly_accepted", "rejected", "ignored", "superseded", "open", "typed", "withheld"]

# What tells more about a suggestion wins; of the two that a user decides by hand, the later one.
_RANK: Final[dict[Fate, int]] = {
    "withheld": 0,
    "open": 1,
    "superseded": 2,
    "ignored": 3,
    "typed": 4,
    "partly_accepted": 5,
    "rejected": 6,
    "accepted": 6,
}
_FATES: Final[dict[str, Fate]] = {"shown": "open", **{fate: fate for fate in _RANK if fate != "open"}}


@dataclass(slots=True)
class Story:
    """One suggestion, shown or held back.

    Attributes:
        time: seconds since 1970 of its first line.
        language: as the editor calls it.
        kind: `fill` or `edit`.
        maker: who proposed it.
        explicit: the user asked for it by hand.
        probability: the highest that the gate gave it; NaN when the log does not say.
        shown: the user saw it.
        reason: why it was held back; empty when it was shown.
        fate: the last word about it: `typed` is what the user wrote by hand, whether it was shown or held back; `open`
            was shown, and nothing else is known.
        saved: characters that the user did not have to type, in UTF-16 units.
    """

    time: float
    language: str
    kind: str
    maker: str
    explicit: bool
    probability: float = math.nan
    shown: bool = False
    reason: str = ""
    fate: Fate = "withheld"
    saved: int = 0

    @property
    def wanted(self) -> bool:
        """Whether it was what the user wanted: taken, in whole or in part, or written by hand."""
        return self.fate in {"accepted", "partly_accepted", "typed"}

    def add(self, record: OutcomeRecord) -> None:
        """Read one of its lines, in their order."""
        if math.isnan(self.probability) or record.probability > self.probability:
            self.probability = record.probability
        fate = _FATES[record.outcome]
        if fate == "ignored" and record.reason == "typed_out":
            fate = "typed"
        if record.outcome in {"withheld", "typed"}:
            self.reason = "" if self.shown else record.reason
        else:
            self.shown, self.reason = True, ""
        if _RANK[fate] >= _RANK[self.fate]:
            self.fate = fate
        if record.accepted_length > 0:
            inserted = record.signals.get("characters_inserted")
            # An insert text may span lines that stay as they are.
            new = inserted if isinstance(inserted, int) else record.accepted_length
            self.saved = max(self.saved, min(record.accepted_length, new))


def stories(records: Iterable[OutcomeRecord]) -> list[Story]:
    """The suggestions of a log, in the order of their first lines; what a later version calls otherwise is left out."""
    found: dict[tuple[str, str], Story] = {}
    for record in records:
        if record.outcome not in _FATES:
            continue
        key = (record.session, record.id)
        story = found.get(key)
        if story is None:
            story = found[key] = Story(
                record.time, record.language, record.kind, record.maker, record.trigger == Trigger.EXPLICIT
            )
        story.add(record)
    return list(found.values())
