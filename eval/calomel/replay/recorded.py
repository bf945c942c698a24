"""The recorded assistant's own offers, each suggestion once, judged by the same simulated user as ours.

While a person types along, the editor asks at each key and gets the rest of the same suggestion: an offer that leads to
the same text as the one before it is the same suggestion. Of the offers in one answer only the first is judged, since
it is on the screen; real acceptances are counted among all of them, as a key could reach them. An accepted offer's text
is in the log because it was offered, so the recorded assistant's result is an upper bound. As with ours, while the
person writes what was accepted nothing else counts as seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, NamedTuple

from calomel.prompts.parts import Edit
from calomel.replay.events import Accepted, Changed, Event, Expected, Offered, Opened, ReplayLog, apply_edits
from calomel.replay.opportunity import Opportunity, Shown, Verdict
from calomel.replay.person import Moment, difference, judge
from calomel.selectivity.sample import Sample
from calomel.suggest.edit import edits_of, plan
from calomel.suggest.judging import Decision

# What a person does within half an hour is alike: its samples stay together.
_SITTING: Final = 1800.0


def shown(verdict: Verdict, edits: tuple[Edit, ...], source: str, **more: Any) -> Shown:
    """A suggestion with its verdict, and what else is known about it."""
    told = {each.name: getattr(verdict, each.name) for each in fields(Verdict)}
    return Shown(**told, edits=edits, source=source, **more)


def raw_confidence(decision: Decision | None) -> float | None:
    """How likely it is right; None if unknown."""
    return None if decision is None or not math.isfinite(decision.probability) else decision.probability


def numbers(text: str, edits: Sequence[Edit], decision: Decision | None) -> dict[str, float]:
    """The signals known before the decision, by name; unknown and non-numeric ones are left out."""
    if decision is None:
        return {}
    values = decision.signals.about(plan(text, edits)).flat()
    return {
        name: float(value) for name, value in values.items() if isinstance(value, int | float) and math.isfinite(value)
    }


@dataclass(slots=True)
class SampleBook:
    """Collects samples of one log.

    Attributes:
        log: the one being played.
        samples: so far.
    """

    log: ReplayLog
    samples: list[Sample] = field(default_factory=list)
    _seen: list[Decision] = field(default_factory=list)
    # The texts that the last question's candidates led to: while the person types along, the same ones come again.
    _goals: dict[tuple[str, str], set[int]] = field(default_factory=dict)

    def see(self, decision: Decision) -> None:
        """Note a candidate that was judged."""
        self._seen.append(decision)

    def forget(self) -> None:
        """Forget the noted candidates, as another question begins."""
        self._seen.clear()

    def take(self, moment: Moment, opportunity: Opportunity) -> None:
        """Judge the candidates noted since the question began, by what the person wrote.

        Args:
            moment: now.
            opportunity: the question.
        """
        goals: set[int] = set()
        before = self._goals.get((moment.document, opportunity.kind), set())
        for found in self._seen:
            edits = edits_of(found.edits)
            goal = hash((apply_edits(moment.text, edits), found.maker))
            if goal not in goals | before:
                verdict = judge(moment, edits, self.log.events)
                self.samples.append(self._sample(moment, opportunity, found, verdict))
            goals.add(goal)
        self._goals[moment.document, opportunity.kind] = goals
        self._seen.clear()

    def _sample(self, moment: Moment, opportunity: Opportunity, found: Decision, verdict: Verdict) -> Sample:
        return Sample(
            question=f"{opportunity.log}:{opportunity.entry}:{opportunity.kind}",
            kind=opportunity.kind,
            outcome=verdict.outcome,
            maker=found.maker,
            language=opportunity.language_id,
            group=self.log.metadata.get("group", f"{self.log.name}#{int(moment.time // _SITTING)}"),
            time=moment.time,
            signals=found.signals.known(),
            filters=found.filters,
            saved_characters=verdict.saved_characters,
            judged_ms=round(found.seconds * 1e3, 4),
            shown=False,
        )


def by_alternatives(event: Expected, text: str, opportunity: Opportunity) -> Opportunity:
    """The same opportunity with its best verdict; where silence is right, everything is rejected.

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
    known = {name: getattr(candidate, name) for name in ("edits", "source", "confidence", "signals")}
    judged = shown(replace(best, kept=None), **known, alternatives=tuple(lines))
    return replace(opportunity, name=event.name, candidate=judged)


@dataclass(slots=True)
class Suggested:
    """One suggestion of the recorded assistant.

    Attributes:
        offer: the first time it was offered.
        before: the text of the document then.
        after: the text that it leads to.
        accepted: the person accepted it, according to the log.
        partly: the person accepted a word or a line of it, according to the log; perhaps several times.
    """

    offer: Offered
    before: str
    after: str
    accepted: bool = False
    partly: bool = False


def distinct_offers(events: Iterable[Event]) -> list[Suggested]:
    """The suggestions of a recording, in order of their first offer. All those of one answer count separately."""
    reader = _Reader()
    for event in events:
        reader.read(event)
    return reader.found


class _Reader:
    def __init__(self) -> None:
        self.found: list[Suggested] = []
        self._texts: dict[str, str] = {}
        # By document: those of the last answer, on the screen; and those that disappeared with the last change or
        # answer, which the next answer may repeat.
        self._current: dict[str, list[Suggested]] = {}
        self._gone: dict[str, list[Suggested]] = {}
        self._requests: dict[str, str] = {}

    def read(self, event: Event) -> None:
        document = event.document
        if isinstance(event, Opened):
            self._texts[document] = event.text
            self._hide(document)
            self._gone.pop(document, None)
        elif isinstance(event, Changed):
            self._texts[document] = apply_edits(self._texts[document], event.edits)
            self._hide(document)
        elif isinstance(event, Accepted):
            self._accept(event)
        elif isinstance(event, Offered):
            self._offer(event)

    def _hide(self, document: str) -> None:
        shown = self._current.pop(document, [])
        if shown:
            self._gone[document] = shown

    def _accept(self, event: Accepted) -> None:
        after = apply_edits(self._texts[event.document], event.edits)
        shown = [*self._current.get(event.document, []), *self._gone.get(event.document, [])]
        whole = next((each for each in shown if each.after == after), None)
        if whole is not None:
            whole.accepted = True
            return
        taken = after[: event.edits[-1].start + len(event.edits[-1].text)] if len(event.edits) == 1 else after
        part = next((each for each in shown if each.after.startswith(taken)), None)
        if part is not None:
            part.partly = True

    def _offer(self, event: Offered) -> None:
        document = event.document
        if self._requests.get(document) != event.request:
            self._requests[document] = event.request
            self._hide(document)
        text = self._texts[document]
        after = apply_edits(text, event.edits)
        known = next((each for each in self._gone.get(document, []) if each.after == after), None)
        if known is None:
            known = Suggested(event, text, after)
            self.found.append(known)
        self._current.setdefault(document, []).append(known)


class Recorded(NamedTuple):
    """Offers with their verdicts; how many distinct ones there were; how many of them the person really accepted."""

    opportunities: list[Opportunity]
    offers: int
    accepts: int


def recorded_offers(log: ReplayLog, events: Sequence[Event]) -> Recorded:
    """The offers among `events`, all or the first ones of the log; judged by the whole log."""
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
        candidate=shown(verdict, offer.edits, offer.source),
        shown=True,
        latency_ms=max(0.0, offer.time - offer.asked) * 1e3,
        real_outcome="accepted" if suggested.accepted else "partly" if suggested.partly else "",
    )
