"""Reading outcome logs: each suggestion and its fate, and counts of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from calomel.selectivity.sample import Reaction, Sample
from calomel.suggest.outcome_log import OutcomeRecord
from calomel.suggest.snapshot import Trigger

# What the user typed by hand counts as accepted, what disappeared without a decision as rejected. Nothing is known of
# what was replaced by another suggestion, or was visible when the log ends.
_OUTCOMES: Final[Mapping[Fate, Reaction]] = {
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
    """A sample per suggestion that has signals and was not explicitly requested, in the order of the log.

    The suggestions of one day are one group, since a person works on one thing.

    Args:
        records: of the log, oldest first.
        model: only those of this model; None for all.
    """
    outcomes = [
        each
        for each in records
        # In Zed, earlier versions logged only acceptances: a filter fitted to them would let everything through.
        if each.trigger != Trigger.EXPLICIT and each.reason != "by_prompt" and model in {None, each.model}
    ]
    signals = {(each.session, each.id): each.signals for each in reversed(outcomes) if each.signals}
    return [_sample(key, story, signals[key]) for key, story in _stories(outcomes).items() if key in signals]


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


# Held back by the threshold; every other reason is a filter's.
_OF_THE_GATE: Final = frozenset({"low_confidence", ""})


@dataclass(slots=True)
class Figures:
    """Counts of one group. `accepted` to `open` were shown; each suggestion is counted once.

    Attributes:
        accepted: taken whole.
        partly: taken in part.
        rejected: dismissed.
        ignored: left alone, or typed against.
        typed: shown, and then written by hand.
        superseded: replaced by a newer one.
        open: shown, and nothing else is known.
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
        """How many were shown."""
        return sum((self.taken, self.rejected, self.ignored, self.typed, self.superseded, self.open))

    @property
    def taken(self) -> int:
        """How many of them were taken, in whole or in part."""
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


def total(items: Iterable[Story]) -> Figures:
    """The counts of all."""
    figures = Figures()
    for story in items:
        figures.add(story)
    return figures


def grouped(items: Iterable[Story], name: Callable[[Story], str]) -> dict[str, Figures]:
    """Counts by name, sorted by name."""
    groups: dict[str, Figures] = {}
    for story in items:
        groups.setdefault(name(story) or "unknown", Figures()).add(story)
    return dict(sorted(groups.items()))


def day_of(story: Story) -> str:
    """The day of its first line in this machine's time zone: YYYY-MM-DD."""
    try:
        return time.strftime("%Y-%m-%d", time.localtime(story.time))
    except (OverflowError, ValueError, OSError):
        return "unknown"


Fate = Literal["accepted", "partly_accepted", "rejected", "ignored", "superseded", "open", "typed", "withheld"]

# The more telling fate wins; of the user's two explicit decisions, the later one.
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
        fate: its final state: `typed` by hand by the user, shown or held back; `open` if it was shown and nothing else
            is known.
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
            # An insert text may include unchanged lines.
            new = inserted if isinstance(inserted, int) else record.accepted_length
            self.saved = max(self.saved, min(record.accepted_length, new))


def stories(records: Iterable[OutcomeRecord]) -> list[Story]:
    """The suggestions of a log, in the order of their first lines; unknown outcomes of later versions are left out."""
    return list(_stories(records).values())


def _stories(records: Iterable[OutcomeRecord]) -> dict[tuple[str, str], Story]:
    by_id: dict[tuple[str, str], Story] = {}
    for each in records:
        if each.outcome in _FATES:
            new = Story(each.time, each.language, each.kind, each.maker)
            by_id.setdefault((each.session, each.id), new).add(each)
    return by_id
