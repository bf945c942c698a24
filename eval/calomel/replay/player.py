"""Plays a log to the very parts that the language server is made of, and writes down what they would have suggested.

The log drives the text, whatever is suggested: an acceptance changes nothing (the person's own text follows), but while
the person writes what was accepted nothing else is asked, since it would be there already. The suggester is told what
it shows and learns the rest from the text, as with an editor that reports nothing.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

from calomel.context.builder import ContextBuilder
from calomel.context.counter import EstimateCounter, ExactCounter, TokenCounter
from calomel.prompts.tokenizer import Tokenizer
from calomel.replay.events import (
    Accepted,
    Changed,
    Closed,
    Edit,
    Event,
    Expected,
    Focused,
    Opened,
    ReplayLog,
    Selected,
    apply_edits,
)
from calomel.replay.log_time import LogTime
from calomel.replay.opportunity import LogResult, Opportunity, Shown
from calomel.replay.options import ReplayOptions
from calomel.replay.person import Moment, Verdict, judge
from calomel.replay.recorded import recorded_offers
from calomel.replay.region import difference
from calomel.replay.timed_completer import Answers, TimedCompleter
from calomel.replay.watched_gate import Decision, WatchedGate
from calomel.suggest.completer import Completer, Kind, ModelInfo
from calomel.suggest.gate import ThresholdGate
from calomel.suggest.outcome_signals import signals_of
from calomel.suggest.planned import plan
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.suggester import Suggester
from calomel.suggest.suggestion import Answer, Suggestion, TextEdit
from calomel.suggest.trigger import Trigger
from calomel.workspace.documents import Document, RangeChange
from calomel.workspace.position import Encoding
from calomel.workspace.preferences import PrivacySettings, SuggestSettings
from calomel.workspace.privacy import Privacy
from calomel.workspace.related import Related
from calomel.workspace.syntax import SyntaxTrees
from calomel.workspace.workspace import Workspace

OURS: Final = "calomel"
# No such folder: rules about paths hold in it, and nothing of this machine is read.
FOLDER: Final = Path("/calomel-replay")
# An editor sends the selection of a change with it, or right behind it.
_SAME_KEYSTROKE: Final = 0.05
# A silence that nobody had time to notice is no missed opportunity.
_NOTICED: Final = 0.25
# After the end of the log, for the last answers.
_AFTER_END: Final = 30.0
# Logs of questions: only what they ask for is asked.
_OF_QUESTIONS: Final = frozenset({"scenario", "example"})


@dataclass(slots=True)
class _Question:
    """What was asked, and in which state of the world."""

    kind: Kind
    document: Document
    name: str
    offset: int
    entry: int
    time: float
    revision: int
    asked: int
    answered: int


class Player:
    """One log, one editor. Runs in a `CountingLoop`."""

    def __init__(
        self,
        log: ReplayLog,
        completer: Completer,
        info: ModelInfo,
        options: ReplayOptions,
        *,
        answers: Answers | None = None,
    ) -> None:
        self.result = LogResult(log.name, log.kind, problems=list(log.problems), checks=log.checks)
        self.report: Callable[[int], None] = lambda _: None
        self.time = LogTime(flows=options.fixed_latency is None)
        self.model = TimedCompleter(completer, self.time, options.fixed_latency, answers)
        self._log = log
        self._events = _until(log.events, options.limit_minutes)
        self._kinds = options.kinds or info.kinds
        self._gate = WatchedGate(ThresholdGate(options.aggressiveness))
        clock = self.time.clock
        privacy = Privacy((FOLDER,), PrivacySettings())
        syntax = SyntaxTrees(clock)
        related = Related(syntax, privacy, clock=clock, watch=False)
        self.workspace = Workspace(
            (FOLDER,), clock, encoding=Encoding.UTF16, privacy=privacy, syntax=syntax, related=related
        )
        self.workspace.listeners += [syntax, related]
        self.suggester = Suggester(
            self.workspace,
            ContextBuilder(_counter(info)),
            self.model,
            SuggestSettings(aggressiveness=options.aggressiveness, debounce_seconds=options.debounce_seconds),
            clock=clock,
            gate=self._gate,
            sleep=self.time.sleep,
            rng=random.Random(options.seed),  # noqa: S311 (names of suggestions)
        )
        self._texts: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        self._focused: str | None = None
        self._position = 0
        self._shown: set[str] = set()
        # By document, up to which event the person writes what was accepted.
        self._given: dict[str, int] = {}
        # By document and kind, where the suggestion led that was held back last.
        self._goals: dict[tuple[str, Kind], int] = {}
        self._asking: tuple[str, int, asyncio.Task[None]] | None = None

    async def play(self) -> LogResult:
        """Play all of it. Raises StuckError."""
        for position, event in enumerate(self._events):
            await self.step(position, event)
            self.report(position + 1)
        if self._events:
            await self.time.run_to(self._events[-1].time + _AFTER_END)
        if self._asking is not None:
            await asyncio.gather(self._asking[2], return_exceptions=True)
        await self.suggester.aclose()
        self._sum_up()
        return self.result

    async def step(self, position: int, event: Event) -> None:
        """Let time go on to an event, and let it happen."""
        self._position = position
        await self.time.run_to(event.time)
        self._position = position + 1
        match event:
            case Opened():
                self._open(event)
            case Changed():
                self._change(event)
            case Selected():
                self._select(event)
            case Focused():
                self._focused = event.document
                self.workspace.focus(_uri(event.document))
                self._give_up(except_in=event.document)
            case Closed():
                self._give_up()
                self._texts.pop(event.document, None)
                self.workspace.close(_uri(event.document))
            case Accepted() if event.document in self._texts:
                after = apply_edits(self._texts[event.document], event.edits)
                self.workspace.expect_prediction(_uri(event.document), after)
            case Expected():
                await self._expect(event)
            case _:
                pass

    # What the editor would send.

    def _open(self, event: Opened) -> None:
        version = self._versions[event.document] = self._versions.get(event.document, 0) + 1
        self._texts[event.document] = event.text
        self.workspace.open(_uri(event.document), event.language_id, version, event.text)

    def _change(self, event: Changed) -> None:
        name, uri = event.document, _uri(event.document)
        document = self.workspace.documents.get(uri)
        if document is None:
            return
        # From the last to the first, as editors do: so the positions of each are those of the text before all.
        changes = [
            RangeChange(
                document.position_at(edit.start, Encoding.UTF16),
                document.position_at(edit.end, Encoding.UTF16),
                edit.text,
            )
            for edit in reversed(event.edits)
        ]
        version = self._versions[name] = self._versions[name] + 1
        self._texts[name] = apply_edits(self._texts[name], event.edits)
        self.workspace.change(uri, version, changes)
        if self._log.kind in _OF_QUESTIONS or (self._focused not in {None, name}):
            self._give_up()
            return
        if self._given.get(name, 0) > self._position:
            self.result.taken += 1
            self._give_up()
            return
        self._ask(event.entry, name, document, self._cursor(event))

    def _cursor(self, event: Changed) -> int:
        """Where the cursor is after a change: where the log says, or behind what was written last."""
        for position in range(self._position, len(self._events)):
            following = self._events[position]
            if following.time - event.time > _SAME_KEYSTROKE or isinstance(following, Changed):
                break
            if isinstance(following, Selected) and following.document == event.document:
                return following.offset
        shift = sum(len(edit.text) - (edit.end - edit.start) for edit in event.edits[:-1])
        return event.edits[-1].start + shift + len(event.edits[-1].text)

    def _select(self, event: Selected) -> None:
        if self._asking is None:
            return
        name, offset, _ = self._asking
        if event.document == name and (event.offset != offset or event.anchor != event.offset):
            self._give_up()

    # Questions and answers.

    def _ask(self, entry: int, name: str, document: Document, offset: int) -> None:
        """Ask anew; the suggester itself ends the question before."""
        task = asyncio.ensure_future(self._ask_kinds(entry, name, document, offset, Trigger.EDIT))
        self._asking = (name, offset, task)

    def _give_up(self, *, except_in: str | None = None) -> None:
        """The editor does not wait for the answer any more."""
        if self._asking is not None and self._asking[0] != except_in:
            self._asking[2].cancel()
            self._asking = None

    async def _ask_kinds(self, entry: int, name: str, document: Document, offset: int, trigger: Trigger) -> None:
        """One question of each kind; what one of them found takes the place of the next."""
        for kind in self._kinds:
            question = self._question(kind, entry, name, document, offset)
            try:
                answer = await self._answer(question, trigger)
            except asyncio.CancelledError:
                self._superseded(question)
                raise
            superseded = isinstance(answer, Silence) and answer.reason is SilenceReason.SUPERSEDED
            self._note(question, answer)
            if superseded or isinstance(answer, Suggestion) or document.revision != question.revision:
                return

    def _question(self, kind: Kind, entry: int, name: str, document: Document, offset: int) -> _Question:
        if document.text != self._texts[name]:
            self.result.text_right = False
        self._gate.last = None
        return _Question(
            kind, document, name, offset, entry, self.time.now, document.revision, self.model.asked,
            len(self.model.answered),
        )  # fmt: skip

    async def _answer(self, question: _Question, trigger: Trigger) -> Answer:
        uri = question.document.uri
        if question.kind == "fill":
            return await self.suggester.inline(uri, question.offset, trigger)
        return await self.suggester.next_edit(uri, None, question.offset, trigger=trigger)

    def _note(self, question: _Question, answer: Answer) -> None:
        """Write down what came of a question."""
        if isinstance(answer, Suggestion):
            if answer.id in self._shown:
                return  # the person types into it
            self._shown.add(answer.id)
            self.suggester.shown(answer.id)
            decision = self._gate.about(answer.candidate)
            verdict, shown = self._judged(question, answer.edits, decision)
            if verdict.outcome in {"accepted", "partly"}:
                self._given[question.name] = verdict.until
            self._add(question, None, shown)
            return
        if answer.reason is SilenceReason.SUPERSEDED:
            self._superseded(question)
            return
        if not answer.asked and not answer.waited and self._goes_on(question):
            self.result.typed_on += 1
            return
        candidate = self._held_back(question)
        if candidate is not None and self._is_repeated(question, candidate):
            self.result.repeated += 1
            return
        self._add(question, str(answer.reason), candidate)

    def _is_repeated(self, question: _Question, candidate: Shown) -> bool:
        """Whether it leads where the last suggestion led that was held back there: the person is typing along."""
        goal = hash(apply_edits(self._texts[question.name], candidate.edits))
        before = self._goals.get((question.name, question.kind))
        self._goals[question.name, question.kind] = goal
        return goal == before

    def _superseded(self, question: _Question) -> None:
        """The person typed on: while the model computed, or before it was asked at all."""
        if self.model.asked == question.asked:
            self.result.typed_on += 1
            return
        candidate = self._held_back(question)
        late = None if candidate is None else replace(candidate, outcome="superseded", visible_seconds=0.0)
        self._add(question, str(SilenceReason.SUPERSEDED), late)

    def _held_back(self, question: _Question) -> Shown | None:
        """The suggestion that the gate saw last, if it is about the text as it is."""
        decision = self._gate.last
        if decision is None or question.document.revision != question.revision:
            return None
        return self._judged(question, decision.signals.edits, decision)[1]

    def _goes_on(self, question: _Question) -> bool:
        """Whether the person changes the document before a silence could be noticed."""
        for position in range(self._position, len(self._events)):
            event = self._events[position]
            if event.time - question.time > _NOTICED:
                return False
            if isinstance(event, Changed) and event.document == question.name:
                return True
        return False

    def _judged(
        self, question: _Question, edits: Sequence[TextEdit], decision: Decision | None
    ) -> tuple[Verdict, Shown]:
        text = self._texts[question.name]
        moment = Moment(question.name, text, self.time.now, self._position)
        suggested = tuple(Edit(*edit) for edit in edits)
        verdict = judge(moment, suggested, self._log.events)
        return verdict, shown_of(suggested, verdict, OURS, _confidence(decision), _signals(text, edits, decision))

    def _add(self, question: _Question, silence: str | None, candidate: Shown | None) -> None:
        answered = self.model.answered[question.answered :]
        self.result.opportunities.append(
            Opportunity(
                log=self._log.name,
                entry=question.entry,
                time=question.time,
                path=question.name,
                language_id=question.document.language_id,
                kind=question.kind,
                silence=silence,
                candidate=candidate,
                shown=silence is None,
                latency_ms=(self.time.now - question.time) * 1e3,
                computed_tokens=sum(each.computed_tokens for each in answered),
                cached_tokens=sum(each.cached_tokens for each in answered),
                model_ms=sum(each.seconds for each in answered) * 1e3,
            )
        )

    # Questions that a log asks, with their right answers.

    async def _expect(self, event: Expected) -> None:
        document = self.workspace.documents.get(_uri(event.document))
        if document is None:
            return
        self._give_up()
        begun = len(self.result.opportunities)
        offset = len(document.text) if event.offset is None else event.offset
        trigger = Trigger.EXPLICIT if event.manual else Trigger.EDIT
        task = asyncio.ensure_future(self._ask_kinds(event.entry, event.document, document, offset, trigger))
        await self.time.run_to(event.time + _AFTER_END)
        await task
        found = self.result.opportunities
        found[begun:] = [self._by_alternatives(event, document.text, each) for each in found[begun:]]

    def _by_alternatives(self, event: Expected, text: str, opportunity: Opportunity) -> Opportunity:
        """Judged by the right answers in place of what follows in the log."""
        candidate = opportunity.candidate
        if candidate is None:
            return replace(opportunity, name=event.name)
        best: Verdict | None = None
        lines: list[str | None] = []
        for alternative in event.alternatives:
            after = [] if alternative is None else [
                Changed(event.entry, event.time, event.document, difference(text, alternative), "other")
            ]  # fmt: skip
            verdict = judge(Moment(event.document, text, event.time, 0), candidate.edits, after)
            lines.append(None if alternative is None else verdict.expected)
            if best is None or _rank(verdict) > _rank(best):
                best = verdict
        if best is None:
            return replace(opportunity, name=event.name)
        judged = shown_of(candidate.edits, best, candidate.source, candidate.confidence, candidate.signals)
        return replace(opportunity, name=event.name, candidate=replace(judged, alternatives=tuple(lines), kept=None))

    def _sum_up(self) -> None:
        events, result = self._events, self.result
        typed = [event for event in events if isinstance(event, Changed) and event.cause == "typed"]
        result.seconds = events[-1].time - events[0].time if events else 0.0
        result.typed_characters = sum(len(edit.text) for event in typed for edit in event.edits)
        result.active_minutes = float(len({int(event.time // 60) for event in typed}))
        for name, text in self._texts.items():
            document = self.workspace.documents.get(_uri(name))
            result.text_right = result.text_right and document is not None and document.text == text
        recorded = recorded_offers(self._log, events)
        result.recorded, result.real_offers, result.real_accepts = recorded


def shown_of(
    edits: tuple[Edit, ...], verdict: Verdict, source: str, confidence: float, signals: dict[str, float] | object
) -> Shown:
    """A suggestion with its verdict, as it is written down."""
    return Shown(
        edits=edits,
        before=verdict.before,
        after=verdict.after,
        expected=verdict.expected,
        confidence=confidence,
        signals=signals if isinstance(signals, dict) else {},
        source=source,
        outcome=verdict.outcome,
        accepted_characters=verdict.accepted_characters,
        saved_characters=verdict.saved_characters,
        kept=verdict.kept,
        visible_seconds=verdict.visible_seconds,
        given=verdict.given,
    )


def _rank(verdict: Verdict) -> tuple[bool, int]:
    return verdict.outcome == "accepted", verdict.accepted_characters


def _until(events: Sequence[Event], minutes: float | None) -> Sequence[Event]:
    if minutes is None:
        return events
    return [event for event in events if event.time <= minutes * 60.0]


def _uri(name: str) -> str:
    return (FOLDER / name).as_uri()


def _counter(info: ModelInfo) -> TokenCounter:
    """Exact where the model's tokenizer is at hand, as in the language server."""
    return EstimateCounter() if info.tokenizer is None else ExactCounter(Tokenizer.from_file(Path(info.tokenizer)))


def _confidence(decision: Decision | None) -> float:
    return math.nan if decision is None else math.exp(min(0.0, decision.candidate.mean_log_prob))


def _signals(text: str, edits: Sequence[TextEdit], decision: Decision | None) -> dict[str, float]:
    """What was known before, as numbers; what is not known is left out."""
    if decision is None:
        return {}
    known = signals_of(decision.candidate, plan(text, edits), decision.signals)
    values = {each.name: getattr(known, each.name) for each in fields(known)}
    return {name: float(value) for name, value in values.items() if isinstance(value, int | float)}
