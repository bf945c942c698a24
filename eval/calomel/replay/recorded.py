"""The recorded assistant's own offers, judged by the same simulated user as ours.

What an editor shows again while the person types into it leads to the same text, and counts once; of the offers of one
answer the first is on the screen. An accepted offer's text is in the log because it was offered, so the judgement of
the recorded assistant is an upper bound.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from calomel.replay.events import Accepted, Changed, Closed, Event, Offered, Opened, ReplayLog, apply_edits
from calomel.replay.opportunity import Opportunity, Shown
from calomel.replay.person import Moment, Verdict, judge


class Recorded(NamedTuple):
    """Offers with their verdicts; how many distinct ones there were; how often the person really took one."""

    opportunities: list[Opportunity]
    offers: int
    accepts: int


def recorded_offers(log: ReplayLog, events: Sequence[Event]) -> Recorded:
    """The offers among `events`, which are the log's, or its beginning; judged by all that the log has."""
    reader = _Reader(log)
    for position, event in enumerate(events):
        reader.see(position, event)
    return Recorded(reader.found, reader.offers, reader.accepts)


@dataclass(slots=True)
class _Reader:
    log: ReplayLog
    found: list[Opportunity] = field(default_factory=list)
    offers: int = 0
    accepts: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    languages: dict[str, str] = field(default_factory=dict)
    # By document and by the text that they lead to: where they are in `found`; None for those that are not judged.
    places: dict[tuple[str, bytes], int | None] = field(default_factory=dict)
    requests: set[str] = field(default_factory=set)
    given: dict[str, int] = field(default_factory=dict)

    def see(self, position: int, event: Event) -> None:
        if isinstance(event, Opened):
            self.texts[event.document] = event.text
            self.languages[event.document] = event.language_id
        elif isinstance(event, Closed):
            self.texts.pop(event.document, None)
        elif event.document not in self.texts:
            return
        elif isinstance(event, Changed):
            self.texts[event.document] = apply_edits(self.texts[event.document], event.edits)
        elif isinstance(event, Accepted):
            self._accepted(event)
        elif isinstance(event, Offered) and event.request not in self.requests:
            self.requests.add(event.request)
            self._offered(position, event)

    def _accepted(self, event: Accepted) -> None:
        self.accepts += 1
        place = self.places.get(self._goal(event))
        if place is not None:
            self.found[place] = replace(self.found[place], real_outcome="accepted")

    def _offered(self, position: int, event: Offered) -> None:
        text = self.texts[event.document]
        goal = self._goal(event)
        if goal in self.places or apply_edits(text, event.edits) == text:
            return
        self.offers += 1
        if self.given.get(event.document, 0) > position:
            # The person writes what was accepted before, and would not have seen this.
            self.places[goal] = None
            return
        verdict = judge(Moment(event.document, text, event.time, position + 1), event.edits, self.log.events)
        if verdict.outcome in {"accepted", "partly"}:
            self.given[event.document] = verdict.until
        self.places[goal] = len(self.found)
        self.found.append(self._opportunity(event, verdict))

    def _goal(self, event: Offered | Accepted) -> tuple[str, bytes]:
        after = apply_edits(self.texts[event.document], event.edits)
        return event.document, hashlib.sha256(after.encode("utf-8", "surrogatepass")).digest()

    def _opportunity(self, event: Offered, verdict: Verdict) -> Opportunity:
        return Opportunity(
            log=self.log.name,
            entry=event.entry,
            time=event.time,
            path=event.document,
            language_id=self.languages[event.document],
            kind="edit" if event.inline_edit else "fill",
            silence=None,
            candidate=Shown(
                edits=event.edits,
                before=verdict.before,
                after=verdict.after,
                expected=verdict.expected,
                confidence=math.nan,
                signals={},
                source=event.source,
                outcome=verdict.outcome,
                accepted_characters=verdict.accepted_characters,
                saved_characters=verdict.saved_characters,
                kept=verdict.kept,
                visible_seconds=verdict.visible_seconds,
            ),
            shown=True,
            latency_ms=max(0.0, event.time - event.asked) * 1e3,
        )
