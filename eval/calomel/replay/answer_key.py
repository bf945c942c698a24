"""Judges what was suggested at a log's own question by its right answers, in place of what follows in the log."""

from __future__ import annotations

from dataclasses import replace

from calomel.replay.candidate import shown
from calomel.replay.events import Changed, Event, Expected
from calomel.replay.opportunity import Opportunity
from calomel.replay.person import Moment, Verdict, judge
from calomel.replay.region import difference


def by_alternatives(event: Expected, text: str, opportunity: Opportunity) -> Opportunity:
    """The same opportunity with the verdict that suits it best; whoever wants silence rejects everything.

    Args:
        event: the question.
        text: of its document.
        opportunity: what was suggested.
    """
    candidate = opportunity.candidate
    if candidate is None or not event.alternatives:
        return replace(opportunity, name=event.name)
    verdicts: list[Verdict] = []
    lines: list[str | None] = []
    for alternative in event.alternatives:
        after: list[Event] = []
        if alternative is not None:
            after.append(Changed(event.entry, event.time, event.document, difference(text, alternative), "other"))
        verdicts.append(judge(Moment(event.document, text, event.time, 0), candidate.edits, after))
        lines.append(None if alternative is None else verdicts[-1].expected)
    best = max(verdicts, key=lambda each: (each.outcome == "accepted", each.accepted_characters))
    judged = shown(candidate.edits, best, candidate.source, candidate.confidence, candidate.signals)
    return replace(opportunity, name=event.name, candidate=replace(judged, alternatives=tuple(lines), kept=None))
