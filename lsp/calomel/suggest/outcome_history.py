"""What an outcome log tells: each suggestion and its fate, and counts of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from calomel.selectivity.sample import Sample
from calomel.suggest.outcome_log import OutcomeRecord
from calomel.suggest.question import Trigger

# What the user typed by hand would have been taken; what went away without a decision was not. Of what gave way to
# another suggestion, or was on the screen when the log ends, nobody knows.
_OUTCOMES: Final[Mapping[Fate, str]] = {
    "accepted": "accepted",
    "typed": "accepted",
    "partly_accepted": "partly",
    "rejected": "rejected",
    "ignored": "rejected",
    "withheld": "rejected",
    "superseded": "superseded",
    "open": "superseded",
}


def outcome_samples(records: Iterable[OutcomeRecord], model: str | None = None) -> list[Sample]:
    """A sample of each suggestion that has signals and that nobody asked for by hand, in the order of the log.

    Suggestions of one day are one group: a person works on one thing.

    Args:
        records: of the log, oldest first.
        model: only those of this model; None for all.
    """
    told = [
        each
        for each in records
        # Earlier versions told of acceptances in Zed alone: a filter fitted to them would let everything through.
        if each.trigger != Trigger.EXPLICIT and each.reason != "by_prompt" and model in {None, each.model}
    ]
    signals = {(each.session, each.id): each.signals for each in reversed(told) if each.signals}
    return [_sample(key, story, signals[key]) for key, story in _stories(told).items() if key in signals]


def _sample(key: tuple[str, str], story: Story, signals: Mapping[str, Any]) -> Sample:
    return Sample(
        question="/".join(key),
        kind=story.kind,
        outcome=_OUTCOMES[story.fate],
        maker=story.maker,
        language=story.language,
        group=time.strftime("%Y-%m-%d", time.gmtime(story.time)),
        time=story.time,
        signals=signals,
        filters=(story.reason,) if not story.shown and story.reason not in _OF_THE_GATE else (),
        saved_characters=story.saved,
        shown=story.shown,
    )


# A threshold held it back; every other reason is a filter's.
_OF_THE_GATE: Final = frozenset({"low_confidence", ""})


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
    shown: bool = False
    reason: str = ""
    fate: Fate = "withheld"
    saved: int = 0

    def add(self, record: OutcomeRecord) -> None:
        """Read one of its lines, in their order."""
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
    return list(_stories(records).values())


def _stories(records: Iterable[OutcomeRecord]) -> dict[tuple[str, str], Story]:
    found: dict[tuple[str, str], Story] = {}
    for each in records:
        if each.outcome in _FATES:
            new = Story(each.time, each.language, each.kind, each.maker)
            found.setdefault((each.session, each.id), new).add(each)
    return found
