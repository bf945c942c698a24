"""The recorded assistant's own offers, judged by the same simulated user as ours.

What the editor shows again while the person types into it is one offer. Of the offers of one answer the first is on the
screen, so that it alone is judged; the real clicks are counted among all of them, as they could be reached by a key.
An accepted offer's text is in the log because it was offered, so the judgement of the recorded assistant is an upper
bound. As with ours, while the person writes what was accepted nothing else counts as seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from calomel.replay.candidate import shown
from calomel.replay.distinct import Suggested, distinct_offers
from calomel.replay.events import Event, Offered, Opened, ReplayLog
from calomel.replay.opportunity import Opportunity
from calomel.replay.person import Moment, Verdict, judge


class Recorded(NamedTuple):
    """Offers with their verdicts; how many distinct ones there were; how many of them the person really took."""

    opportunities: list[Opportunity]
    offers: int
    accepts: int


def recorded_offers(log: ReplayLog, events: Sequence[Event]) -> Recorded:
    """The offers among `events`, which are the log's, or its beginning; judged by all that the log has."""
    everything = distinct_offers(events)
    languages = {event.document: event.language_id for event in events if isinstance(event, Opened)}
    positions = {id(event): position for position, event in enumerate(events)}
    found: list[Opportunity] = []
    given: dict[str, int] = {}
    for suggested in distinct_offers(_first_of_answers(events)):
        offer = suggested.offer
        position = positions[id(offer)]
        if suggested.after == suggested.before or given.get(offer.document, 0) > position:
            continue
        moment = Moment(offer.document, suggested.before, offer.time, position + 1)
        verdict = judge(moment, offer.edits, log.events)
        if verdict.outcome in {"accepted", "partly"}:
            given[offer.document] = verdict.until
        found.append(_opportunity(log.name, suggested, verdict, languages[offer.document]))
    return Recorded(found, len(everything), sum(each.accepted for each in everything))


def _first_of_answers(events: Sequence[Event]) -> Iterator[Event]:
    seen: set[tuple[str, str]] = set()
    for event in events:
        if isinstance(event, Offered):
            if (event.document, event.request) in seen:
                continue
            seen.add((event.document, event.request))
        yield event


def _opportunity(log: str, suggested: Suggested, verdict: Verdict, language_id: str) -> Opportunity:
    offer = suggested.offer
    return Opportunity(
        log=log,
        entry=offer.entry,
        time=offer.time,
        path=offer.document,
        language_id=language_id,
        kind="edit" if offer.inline_edit else "fill",
        silence=None,
        candidate=shown(offer.edits, verdict, offer.source),
        shown=True,
        latency_ms=max(0.0, offer.time - offer.asked) * 1e3,
        real_outcome="accepted" if suggested.accepted else "partly" if suggested.partly else "",
    )
