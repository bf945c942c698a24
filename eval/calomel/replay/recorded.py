"""The recorded assistant's own offers, each suggestion once, judged by the same simulated user as ours; and filtered.

A recording says what another assistant offered, and what the person accepted. `filtered_offers` plays its documents to
the editor's side; at each offer that side is asked, and the model behind it answers with just that offer. What is then
shown, and what of it the person accepted, is the filter's worth for a strong model. Outcomes are reported as by an
editor, so that what learns from them learns as one goes.

Every candidate that was judged is a sample, with its outcome.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, NamedTuple

from calomel.infer.client import ModelClient
from calomel.infer.completer import Candidate, CompleteAnswer, CompleteRequest, ModelInfo
from calomel.infer.models import Models
from calomel.prompts.parts import Edit, RegionBounds, edited
from calomel.replay.editor import Editor
from calomel.replay.events import Accepted, Changed, Event, Expected, Offered, Opened, ReplayLog, apply_edits
from calomel.replay.opportunity import Opportunity, Shown, Verdict
from calomel.replay.person import Moment, difference, judge
from calomel.report.result import Report, Table, Value
from calomel.selectivity.sample import Sample
from calomel.suggest.edit import Suggestion
from calomel.suggest.judging import Judged
from calomel.suggest.snapshot import Trigger
from calomel.suggest.suggester import Suggester
from calomel.workspace.edits import edits_of, plan
from calomel.workspace.settings import Aggressiveness, SuggestSettings

# What a person does within half an hour is alike: its samples stay together.
_SITTING: Final = 1800.0


def shown(verdict: Verdict, edits: tuple[Edit, ...], source: str, **more: Any) -> Shown:
    """A suggestion with its verdict, and what else is known about it."""
    told = {each.name: getattr(verdict, each.name) for each in fields(Verdict)}
    return Shown(**told, edits=edits, source=source, **more)


def raw_confidence(decision: Judged | None) -> float | None:
    """How likely it is right; None if unknown."""
    return None if decision is None or not math.isfinite(decision.probability) else decision.probability


def numbers(text: str, edits: Sequence[Edit], decision: Judged | None) -> dict[str, float]:
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
    _seen: list[Judged] = field(default_factory=list)
    # The texts that the last question's candidates led to: while the person types along, the same ones come again.
    _goals: dict[tuple[str, str], set[int]] = field(default_factory=dict)

    def see(self, decision: Judged) -> None:
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

    def _sample(self, moment: Moment, opportunity: Opportunity, found: Judged, verdict: Verdict) -> Sample:
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


# So large that any offer lies within.
_REGION: Final = RegionBounds(above=200, below=200, characters=60_000)
_CONTEXT: Final = 32_768
_CURVE: Final = tuple(step / 20 for step in range(1, 20))


@dataclass(frozen=True, slots=True)
class OfferRow:
    """One offer of the assistant.

    Attributes:
        time: seconds of the log's clock.
        kind: how it was asked for here.
        taken: the person accepted it, wholly or in part.
        reason: why it was not shown; empty if it was.
        probability: that it is accepted; None where it was not decided about.
        doubts: filters of doubt that it fails.
        signals: what was known of it.
    """

    time: float
    kind: str
    taken: bool
    reason: str = ""
    probability: float | None = None
    doubts: tuple[str, ...] = ()
    signals: dict[str, object] = field(default_factory=dict)


class _Assistant:
    """Answers with one offer, for the region or the hole that is asked about."""

    address: str | None = None

    def __init__(self, name: str) -> None:
        self.suggested: Suggested | None = None
        self._name = name

    async def info(self) -> ModelInfo:
        return ModelInfo(
            self._name, self._name, ("fill", "edit"), _CONTEXT, _CONTEXT // 4, None, "0", _REGION, source="hosted"
        )

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        if self.suggested is None:
            return CompleteAnswer((), model=self._name, judged=False)
        edit, before = self.suggested.offer.edits[0], self.suggested.before
        if request.kind == "fill":
            return CompleteAnswer((Candidate(edit.text),), model=self._name, judged=False)
        region = request.parts.region
        text = "" if region is None else region.text
        start = before.find(text)
        if text and start <= edit.start and edit.end <= start + len(text):
            text = edited(text, [(edit.start - start, edit.end - start, edit.text)])
        return CompleteAnswer((Candidate(text),), model=self._name, judged=False)

    async def aclose(self) -> None:
        """There is nothing to close."""


async def filtered_offers(log: ReplayLog, aggressiveness: Aggressiveness = "balanced") -> list[OfferRow]:
    """Each distinct offer of a recording, in order, and what the filter does with it."""
    now = 0.0

    def clock() -> float:
        return now

    first = {id(each.offer): each for each in distinct_offers(log.events)}
    sources = Counter(event.source for event in log.events if isinstance(event, Offered))
    model = _Assistant(max(sources, key=lambda name: sources[name], default="") or "assistant")
    editor = Editor(clock)
    suggester = Suggester(
        editor.workspace,
        Models.of(ModelClient.of(model, clock=clock, sleep=lambda _: asyncio.sleep(0))),
        SuggestSettings(aggressiveness=aggressiveness, debounce_seconds=0.0),
        rng=random.Random(0),  # noqa: S311 (names of suggestions)
    )
    decisions: list[Judged] = []
    suggester.filter.watch = decisions.append
    rows: list[OfferRow] = []
    for event in log.events:
        now = max(now, event.time)
        editor.send(event)
        suggested = first.get(id(event))
        document = None if suggested is None else editor.document(event.document)
        if suggested is None or document is None or suggested.after == suggested.before:
            continue
        model.suggested = suggested
        # What was answered before is no answer to this.
        suggester.withdrawn()
        decisions.clear()
        rows.append(await _row(suggester, suggested, document.uri, decisions))
    await suggester.aclose()
    return rows


async def _row(suggester: Suggester, suggested: Suggested, uri: str, decisions: Sequence[Judged]) -> OfferRow:
    offer, edit = suggested.offer, suggested.offer.edits[0]
    fills = not offer.inline_edit and edit.start == edit.end
    if fills:
        answer = await suggester.inline(uri, edit.start, Trigger.EDIT)
    else:
        answer = await suggester.next_edit(uri, None, edit.start, trigger=Trigger.EDIT)
    shown = isinstance(answer, Suggestion)
    if isinstance(answer, Suggestion):
        suggester.shown(answer.id)
    decision = decisions[0] if decisions else None
    return OfferRow(
        offer.time,
        "fill" if fills else "edit",
        suggested.accepted or suggested.partly,
        "" if shown or isinstance(answer, Suggestion) else str(answer.reason),
        None if decision is None else decision.probability,
        () if decision is None else decision.signals.doubts,
        {} if decision is None else decision.signals.known(),
    )


def assistant_report(rows: Sequence[OfferRow], aggressiveness: Aggressiveness) -> Report:
    """The figures of all offers, and the curve of what is shown against what is lost."""
    taken = [row for row in rows if row.taken]
    shown = [row for row in rows if not row.reason]
    lost = [row for row in taken if row.reason]
    flat: dict[str, Value] = {
        "aggressiveness": aggressiveness,
        "assistant_offers": len(rows),
        "assistant_shown": len(shown) / len(rows) if rows else None,
        "assistant_accepted": len(taken),
        "assistant_acceptance": sum(row.taken for row in shown) / len(shown) if shown else None,
        "assistant_lost": len(lost),
    }
    reasons = Counter(row.reason for row in rows if row.reason)
    of_taken = Counter(row.reason for row in lost)
    judged = [row for row in rows if row.probability is not None]
    curve = []
    for least in _CURVE:
        above = [row for row in judged if (row.probability or 0.0) >= least]
        accepted = sum(row.taken for row in judged) - sum(row.taken for row in above)
        curve.append((f"{least:.2f}", f"{len(above) / len(judged):.0%}" if judged else "-", str(accepted)))
    return Report(
        bench="replay recorded assistant",
        flat=flat,
        tables=(
            Table("The recorded assistant, filtered", ("", ""), [(name, _cell(flat[name])) for name in flat]),
            Table(
                "Hidden, by reason",
                ("reason", "offers", "accepted by the user"),
                [(reason, str(count), str(of_taken[reason])) for reason, count in reasons.most_common()],
            ),
            Table("By threshold only", ("lowest probability", "shown", "accepted ones hidden"), curve),
        ),
        notes=("The recorded user saw every offer; nobody knows what they would have written without one.",),
        details={"offers": [_plain(row) for row in rows]},
    )


def _cell(value: Value) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _plain(row: OfferRow) -> dict[str, Any]:
    return asdict(row)
