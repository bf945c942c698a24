"""Plays a log to the language server's own components, and records what they would have suggested.

The log drives the text, whatever is suggested: an acceptance changes nothing (the person's own text follows), but while
the person writes what was accepted nothing else is asked, since it would be there already. The suggester gets a report
of what is shown and learns the rest from the text, as with an editor that reports nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from calomel.context.builder import ContextBuilder
from calomel.context.window import EstimateCounter, ExactCounter, TokenCounter
from calomel.infer.client import ModelClient
from calomel.infer.completer import Completer, Kind, ModelInfo
from calomel.infer.models import Models
from calomel.prompts.parts import Edit
from calomel.prompts.tokenizer import Tokenizer
from calomel.replay.editor import Editor, cursor_after
from calomel.replay.events import (
    Changed,
    Closed,
    Event,
    Expected,
    Focused,
    Opened,
    ReplayLog,
    Selected,
    apply_edits,
    language_of,
)
from calomel.replay.figures import parse_error_delta
from calomel.replay.log_time import Decisions, LogTime, TimedCompleter
from calomel.replay.opportunity import LogResult, Opportunity, ReplayOptions, Shown
from calomel.replay.person import Moment, judge
from calomel.replay.recorded import SampleBook, by_alternatives, numbers, raw_confidence, recorded_offers, shown
from calomel.suggest.edit import Answer, Suggestion
from calomel.suggest.judging import Judged
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.snapshot import Trigger
from calomel.suggest.suggester import Suggester
from calomel.workspace.documents import Document
from calomel.workspace.edits import edits_of
from calomel.workspace.settings import SuggestSettings

OURS: Final = "calomel"
# A shorter silence goes unnoticed and is not a missed opportunity.
_NOTICED: Final = 0.25
# After the end of the log, for the last answers.
_AFTER_END: Final = 30.0


@dataclass(slots=True)
class _Question:
    """What was asked, and the state at that time."""

    kind: Kind
    document: Document
    name: str
    offset: int
    entry: int
    time: float
    revision: int
    asked: int
    answered: int
    decided: int


class Player:
    """One log, one editor. Runs in a `CountingLoop`."""

    def __init__(
        self,
        log: ReplayLog,
        completer: Completer,
        info: ModelInfo,
        options: ReplayOptions,
    ) -> None:
        self.result = LogResult(log.name, log.kind, problems=list(log.problems), checks=log.checks)
        self.report: Callable[[int], None] = lambda _: None
        self.over: Callable[[], bool] = lambda: False
        self.time = LogTime(flows=options.fixed_latency is None)
        self.model = TimedCompleter(completer, self.time, options.fixed_latency)
        self._log = log
        self._events = _until(log.events, options.limit_minutes)
        self._kinds = options.kinds or info.kinds
        self._book = SampleBook(log) if options.samples else None
        self._decisions = Decisions()
        clock = self.time.clock
        self.editor = Editor(clock, None if options.open_files is None else log.project)
        # The same ones in every run.
        chance = random.Random(log.name)  # noqa: S311
        others = chance.sample(sorted(log.project), min(options.open_files or 0, len(log.project)))
        for name in others:
            self.editor.send(Opened(0, 0.0, name, language_of(name), log.project[name]))
        self.suggester = Suggester(
            self.editor.workspace,
            Models.of(ModelClient.of(self.model, clock=clock, sleep=self.time.sleep)),
            SuggestSettings(aggressiveness=options.aggressiveness, debounce_seconds=options.debounce_seconds),
            builder=ContextBuilder(_counter(info)),
            rng=random.Random(options.seed),  # noqa: S311 (names of suggestions)
        )
        self.suggester.filter.watch = self._watch
        self.suggester.filter.audit = self._book is not None
        self._position = 0
        self._shown: set[str] = set()
        # By document, the event up to which the person writes what was accepted.
        self._given: dict[str, int] = {}
        # By document and kind, the hash of the text that the last held-back suggestion led to.
        self._goals: dict[tuple[str, Kind], int] = {}
        self._asking: tuple[str, int, asyncio.Task[None]] | None = None

    async def play(self) -> LogResult:
        """Play all of it, or as much as until it is `over`. Raises StuckError."""
        try:
            for position, event in enumerate(self._events):
                await self.step(position, event)
                self.report(position + 1)
                if self.over():
                    self._events = self._events[: position + 1]
                    break
            if self._events:
                await self.time.run_to(self._events[-1].time + _AFTER_END)
            if self._asking is not None:
                await self.time.finish(self._asking[2])
            await self.suggester.aclose()
            self._sum_up()
            return self.result
        finally:
            self.editor.close()

    async def step(self, position: int, event: Event) -> None:
        """Advance time to an event, and play it."""
        self._position = position
        await self.time.run_to(event.time)
        self._position = position + 1
        self.editor.send(event)
        match event:
            case Changed():
                self._changed(event)
            case Selected():
                self._selected(event)
            case Focused():
                self._give_up(except_in=event.document)
            case Closed():
                self._give_up()
            case Expected():
                await self._expect(event)
            case _:
                pass

    def _changed(self, event: Changed) -> None:
        """Ask, where the editor would."""
        document = self.editor.document(event.document)
        if document is None:
            return
        # In a scenario only its own questions are asked.
        if self._log.kind == "scenario" or self.editor.focused not in {None, event.document}:
            self._give_up()
        elif self._given.get(event.document, 0) > self._position:
            self.result.taken += 1
            self._give_up()
        else:
            self._ask(event.entry, event.document, document, cursor_after(event, self._events, self._position))

    def _selected(self, event: Selected) -> None:
        if self._asking is None:
            return
        name, offset, _ = self._asking
        if event.document == name and (event.offset != offset or event.anchor != event.offset):
            self._give_up()

    # Questions and answers.

    def _ask(self, entry: int, name: str, document: Document, offset: int) -> None:
        """Ask again; the suggester itself cancels the previous question."""
        task = asyncio.ensure_future(self._ask_kinds(entry, name, document, offset, Trigger.EDIT))
        self._asking = (name, offset, task)

    def _give_up(self, *, except_in: str | None = None) -> None:
        """The editor no longer waits for the answer."""
        if self._asking is not None and self._asking[0] != except_in:
            self._asking[2].cancel()
            self._asking = None

    async def _ask_kinds(self, entry: int, name: str, document: Document, offset: int, trigger: Trigger) -> None:
        """One question per kind; if one finds something, the next is not asked."""
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

    def _watch(self, decision: Judged) -> None:
        self._decisions(decision)
        if self._book is not None:
            self._book.see(decision)

    def _question(self, kind: Kind, entry: int, name: str, document: Document, offset: int) -> _Question:
        if document.text != self.editor.texts[name]:
            self.result.text_right = False
        if self._book is not None:
            self._book.forget()
        return _Question(
            kind, document, name, offset, entry, self.time.now, document.revision, self.model.asked,
            len(self.model.answered), len(self._decisions.all),
        )  # fmt: skip

    async def _answer(self, question: _Question, trigger: Trigger) -> Answer:
        uri = question.document.uri
        if question.kind == "fill":
            return await self.suggester.inline(uri, question.offset, trigger)
        return await self.suggester.next_edit(uri, None, question.offset, trigger=trigger)

    def _note(self, question: _Question, answer: Answer) -> None:
        """Record the result of a question."""
        if self._book is not None and question.document.revision == question.revision:
            self._book.take(self._moment(question), self._opportunity(question))
        if isinstance(answer, Suggestion):
            if answer.id in self._shown:
                return  # the person types into it
            self._shown.add(answer.id)
            self.suggester.shown(answer.id)
            decision = self._decisions.about(answer.candidate)
            candidate = self._judged(question, answer.edits, decision)
            if candidate.outcome in {"accepted", "partly"}:
                self._given[question.name] = candidate.until
            self._add(question, None, candidate)
            return
        if answer.reason is SilenceReason.SUPERSEDED:
            self._superseded(question)
            return
        if not answer.asked and not answer.waited and self._goes_on(question):
            self.result.typed_on += 1
            return
        held_back = self._held_back(question)
        if held_back is not None and self._is_repeated(question, held_back):
            self.result.repeated += 1
            return
        self._add(question, str(answer.reason), held_back)

    def _moment(self, question: _Question) -> Moment:
        return Moment(question.name, self.editor.texts[question.name], self.time.now, self._position)

    def _is_repeated(self, question: _Question, candidate: Shown) -> bool:
        """Whether it leads to the same text as the last suggestion held back there: the person is typing along."""
        goal = hash(apply_edits(self.editor.texts[question.name], candidate.edits))
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
        """The surest suggestion that the gate saw, if it is about the current text; None if the book collects all."""
        decision = None if self._book is not None else self._decisions.surest(question.decided)
        if decision is None or question.document.revision != question.revision:
            return None
        return self._judged(question, edits_of(decision.edits), decision)

    def _goes_on(self, question: _Question) -> bool:
        """Whether the person changes the document before a silence could be noticed."""
        for position in range(self._position, len(self._events)):
            event = self._events[position]
            if event.time - question.time > _NOTICED:
                return False
            if isinstance(event, Changed) and event.document == question.name:
                return True
        return False

    def _judged(self, question: _Question, edits: Sequence[Edit], decision: Judged | None) -> Shown:
        moment, edits = self._moment(question), tuple(edits)
        errors = parse_error_delta(moment.text, apply_edits(moment.text, edits), question.document.language_id)
        return shown(
            judge(moment, edits, self._log.events),
            edits,
            OURS,
            confidence=raw_confidence(decision),
            signals={
                **numbers(moment.text, edits, decision),
                **({} if errors is None else {"parse_error_delta": float(errors)}),
            },
            maker="" if decision is None else decision.maker,
        )

    def _add(self, question: _Question, silence: str | None, candidate: Shown | None) -> None:
        self.result.opportunities.append(self._opportunity(question, silence, candidate))

    def _opportunity(
        self, question: _Question, silence: str | None = None, candidate: Shown | None = None
    ) -> Opportunity:
        answered = self.model.answered[question.answered :]
        return Opportunity(
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
            steps=sum(each.steps for each in answered),
            rows=sum(each.rows for each in answered),
            makers=tuple(sorted(set[str]().union(*(each.makers for each in answered)))),
        )

    # Questions in a log, with their right answers.

    async def _expect(self, event: Expected) -> None:
        document = self.editor.document(event.document)
        if document is None:
            return
        self._give_up()
        begun = len(self.result.opportunities)
        offset = len(document.text) if event.offset is None else event.offset
        trigger = Trigger.EXPLICIT if event.manual else Trigger.EDIT
        task = asyncio.ensure_future(self._ask_kinds(event.entry, event.document, document, offset, trigger))
        await self.time.run_to(event.time + _AFTER_END)
        await self.time.finish(task)
        await task
        found = self.result.opportunities
        found[begun:] = [by_alternatives(event, document.text, each) for each in found[begun:]]

    def _sum_up(self) -> None:
        events, result = self._events, self.result
        typed = [event for event in events if isinstance(event, Changed) and event.cause == "typed"]
        result.seconds = events[-1].time - events[0].time if events else 0.0
        result.typed_characters = sum(len(edit.text) for event in typed for edit in event.edits)
        result.active_minutes = float(len({int(event.time // 60) for event in typed}))
        result.text_right = result.text_right and self.editor.agrees()
        if self._book is not None:
            result.samples = self._book.samples
        recorded = recorded_offers(self._log, events)
        result.recorded, result.real_offers, result.real_accepts = recorded


def _until(events: Sequence[Event], minutes: float | None) -> Sequence[Event]:
    if minutes is None:
        return events
    return [event for event in events if event.time <= minutes * 60.0]


def _counter(info: ModelInfo) -> TokenCounter:
    """Exact where the model's tokenizer is available, as in the language server."""
    return EstimateCounter() if info.tokenizer is None else ExactCounter(Tokenizer.from_file(Path(info.tokenizer)))
