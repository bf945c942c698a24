"""The outcome log as samples that a calibrator is fitted to: the stored signals suffice, no text is needed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from calomel.selectivity.sample import Sample
from calomel.suggest.outcome import BY_PROMPT
from calomel.suggest.outcome_record import OutcomeRecord
from calomel.suggest.stats.story import Fate, Story
from calomel.suggest.trigger import Trigger

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
    stories: dict[tuple[str, str], Story] = {}
    signals: dict[tuple[str, str], Mapping[str, Any]] = {}
    for record in records:
        if record.trigger == Trigger.EXPLICIT or (model is not None and record.model != model):
            continue
        if record.reason == BY_PROMPT:
            continue  # of what was not accepted there, nobody knows: a filter fitted to it would let everything through
        key = (record.session, record.id)
        if record.signals:
            signals.setdefault(key, record.signals)
        story = stories.get(key) or Story(record.time, record.language, record.kind, record.maker, explicit=False)
        try:
            story.add(record)
        except KeyError:
            continue  # an outcome of a later version
        stories[key] = story
    return [_sample(key, story, signals[key]) for key, story in stories.items() if key in signals]


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
