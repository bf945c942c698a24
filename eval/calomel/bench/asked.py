"""Puts the cases of a suite to a model, through the same workspace, context and suggestions as an editor does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from calomel.bench.cases import Case, SuiteError
from calomel.bench.suite_score import Reply
from calomel.context.builder import ContextBuilder
from calomel.context.counter import EstimateCounter, TokenCounter
from calomel.replay.events import Changed, Closed, Edit, Event, Focused, Opened
from calomel.suggest.completer import Candidate, Completer, Kind
from calomel.suggest.gate import Signals, ThresholdGate, Verdict
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.suggester import Suggester
from calomel.suggest.suggestion import apply
from calomel.suggest.trigger import Trigger
from calomel.workspace.documents import RangeChange
from calomel.workspace.position import Encoding
from calomel.workspace.preferences import SuggestSettings
from calomel.workspace.syntax import SyntaxTrees
from calomel.workspace.workspace import Workspace

_BROKEN: Final = frozenset(
    {
        SilenceReason.FAILED,
        SilenceReason.NO_MODEL,
        SilenceReason.LOADING,
        SilenceReason.OVERLOADED,
        SilenceReason.TIMEOUT,
    }
)


@dataclass(frozen=True, slots=True)
class _Selective:
    """The same threshold for those who ask by a key: the suite asks so, and scores who stays silent all the same."""

    threshold: ThresholdGate

    def decide(self, candidate: Candidate, signals: Signals) -> Verdict:
        return self.threshold.decide(candidate, replace(signals, trigger=Trigger.EDIT))


class _Room:
    """One editor that a case is played in; its clock is the log's, and goes on from there as time passes."""

    def __init__(self, completer: Completer, settings: SuggestSettings, counter: TokenCounter) -> None:
        self._now, self._since = 0.0, time.monotonic()
        syntax = SyntaxTrees(self.clock)
        self.workspace = Workspace((), self.clock, encoding=Encoding.UTF32, syntax=syntax)
        self.workspace.listeners.append(syntax)
        self.suggester = Suggester(
            self.workspace,
            ContextBuilder(counter),
            completer,
            settings,
            clock=self.clock,
            gate=_Selective(ThresholdGate(settings.aggressiveness)),
            sleep=asyncio.sleep,
        )

    def clock(self) -> float:
        return self._now + time.monotonic() - self._since

    def play(self, events: Sequence[Event]) -> None:
        for event in events:
            self._now, self._since = max(self._now, event.time), time.monotonic()
            uri = uri_of(getattr(event, "document", ""))
            if isinstance(event, Opened):
                document = self.workspace.open(uri, event.language_id, 1, event.text)
                document.path = event.document
            elif isinstance(event, Changed):
                self.workspace.change(uri, None, self._changes(uri, event.edits))
            elif isinstance(event, Closed):
                self.workspace.close(uri)
            elif isinstance(event, Focused):
                self.workspace.focus(uri)

    def _changes(self, uri: str, edits: Sequence[Edit]) -> list[RangeChange]:
        """The edits from the last to the first, so that none moves another."""
        document = self.workspace.documents.get(uri)
        if document is None:
            raise ValueError(f"{uri} is not open")
        return [
            RangeChange(document.position_at(edit.start), document.position_at(edit.end), edit.text)
            for edit in reversed(edits)
        ]


def uri_of(path: str) -> str:
    """A URI for a document that need not be a file."""
    return f"untitled:{path}"


async def ask(
    case: Case,
    completer: Completer,
    *,
    kind: Kind = "edit",
    settings: SuggestSettings | None = None,
    counter: TokenCounter | None = None,
) -> Reply:
    """What the model has to say to a case.

    For a next edit it is asked as by a key, since the scenarios say so and since not all have an edit to begin with;
    for text at the cursor as after a keystroke, since by a key it would have to say something.

    Raises:
        SuiteError: the model was not there, or broke; that is no silence of its own.
    """
    room = _Room(completer, settings or SuggestSettings(debounce_seconds=0.0), counter or EstimateCounter())
    log = case.log()
    room.play([event for event in log.events if isinstance(event, Opened | Changed | Closed | Focused)])
    # What a scenario calls its history is finished; an editor would say so by a save or by the next edit.
    room.workspace.history.settle()
    uri = uri_of(case.scenario.file)
    document = room.workspace.documents.get(uri)
    if document is None or document.text != case.text:
        raise ValueError(f"{case.name}: its history does not lead to its text")
    started = time.perf_counter()
    if kind == "fill":
        answer = await room.suggester.inline(uri, case.fill_offset, Trigger.EDIT)
    else:
        answer = await room.suggester.next_edit(uri, None, case.offset, trigger=Trigger.EXPLICIT)
    latency_ms = (time.perf_counter() - started) * 1000
    await room.suggester.aclose()
    if isinstance(answer, Silence):
        if answer.reason in _BROKEN:
            raise SuiteError(f"{case.name}: the model did not answer: {answer.reason}. {answer.message}")
        return Reply(None, str(answer.reason), latency_ms)
    return Reply(apply(case.text, answer.edits), None, latency_ms)
