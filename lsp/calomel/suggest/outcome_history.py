"""What an outcome log tells: each suggestion and its fate, counts of them, what another threshold would have done."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from calomel.selectivity.sample import Sample
from calomel.suggest.outcome_log import History, OutcomeRecord, record_of
from calomel.suggest.question import Trigger
from calomel.suggest.silence import SilenceReason


def read_outcomes(path: Path) -> History[OutcomeRecord]:
    """The records of a log and of its rotated files; none without a file. Raises OSError for an unreadable one."""
    return History.of(path, record_of)


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
    return list(_stories(records).values())


def _stories(records: Iterable[OutcomeRecord]) -> dict[tuple[str, str], Story]:
    found: dict[tuple[str, str], Story] = {}
    for each in records:
        if each.outcome in _FATES:
            explicit = each.trigger == Trigger.EXPLICIT
            new = Story(each.time, each.language, each.kind, each.maker, explicit)
            found.setdefault((each.session, each.id), new).add(each)
    return found


STEPS: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One threshold.

    Attributes:
        threshold: a name of the setting, or the least probability of what is shown.
        shown: suggestions that it would have shown.
        wanted: of these, taken or written by hand.
        missed: wanted ones that it would not have shown.
        of: suggestions of which the gate had the last word.
    """

    threshold: str
    shown: int
    wanted: int
    missed: int
    of: int


def what_if(found: Sequence[Story], named: Mapping[str, Mapping[str, float]]) -> tuple[WhatIf, ...]:
    """Each name and some numbers, lowest first, over what a threshold decides about.

    Neither what the user asked for by hand, which is shown at any, nor what was held back for another reason.

    Args:
        found: suggestions of a log.
        named: what the names of thresholds come to, by kind.
    """
    decided = [
        story for story in found if not story.explicit and (story.shown or story.reason == SilenceReason.LOW_CONFIDENCE)
    ]

    def at(threshold: str, of_kinds: Mapping[str, float]) -> WhatIf:
        shown = [story.wanted for story in decided if story.probability >= of_kinds[story.kind]]
        wanted = sum(shown)
        return WhatIf(threshold, len(shown), wanted, sum(story.wanted for story in decided) - wanted, len(decided))

    names = [at(name, {kind: each[name] for kind, each in named.items()}) for name in ("eager", "balanced", "quiet")]
    return (*names, *(at(f"{step:g}", dict.fromkeys(named, step)) for step in STEPS))
