"""One editor that a bench plays edits in: the workspace, context and suggestions of the real one, on a log's clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from calomel.context.budget import EstimateCounter, TokenCounter
from calomel.context.builder import ContextBuilder
from calomel.prompts.parts import Hunk
from calomel.replay.events import Changed, Closed, Edit, Event, Focused, Opened
from calomel.replay.watching import Decision
from calomel.suggest.completer import Candidate, CompleteAnswer, Completer, CompleteRequest, ModelInfo
from calomel.suggest.gate import Gate, Signals, ThresholdGate, Verdict
from calomel.suggest.silence import SilenceReason
from calomel.suggest.suggester import Suggester
from calomel.suggest.trigger import Trigger
from calomel.workspace.documents import Document, Encoding, RangeChange
from calomel.workspace.settings import SuggestSettings
from calomel.workspace.syntax import SyntaxTrees
from calomel.workspace.workspace import Workspace

# Reasons that say that there was no answer, which is no silence of a model's own.
BROKEN: Final = frozenset(
    {
        SilenceReason.FAILED,
        SilenceReason.NO_MODEL,
        SilenceReason.LOADING,
        SilenceReason.OVERLOADED,
        SilenceReason.TIMEOUT,
    }
)


@dataclass(frozen=True, slots=True)
class Selective:
    """The same threshold for those who ask by a key: the suite asks so, and scores who stays silent all the same.

    Attributes:
        inner: decides.
        seen: what it was asked, and what it said.
    """

    inner: Gate
    seen: list[Decision]

    def decide(self, candidate: Candidate, signals: Signals) -> Verdict:
        """As for a question that nobody asked."""
        signals = replace(signals, trigger=Trigger.EDIT)
        verdict = self.inner.decide(candidate, signals)
        self.seen.append(Decision(candidate, signals, verdict))
        return verdict


class Room:
    """One editor; its clock is the log's, and goes on from there as time passes."""

    def __init__(
        self,
        completer: Completer,
        settings: SuggestSettings | None = None,
        counter: TokenCounter | None = None,
        gate: Gate | None = None,
    ) -> None:
        self._now, self._since = 0.0, time.monotonic()
        self._version = 1
        settings = settings or SuggestSettings(debounce_seconds=0.0)
        syntax = SyntaxTrees()
        self.workspace = Workspace((), self.clock, encoding=Encoding.UTF32, syntax=syntax)
        self.workspace.listeners.append(syntax)
        # What the gate was asked, and what it said, in order.
        self.seen: list[Decision] = []
        self.suggester = Suggester(
            self.workspace,
            ContextBuilder(counter or EstimateCounter()),
            completer,
            settings,
            clock=self.clock,
            gate=Selective(gate or ThresholdGate(settings.aggressiveness), self.seen),
            sleep=asyncio.sleep,
        )

    def clock(self) -> float:
        """Seconds."""
        return self._now + time.monotonic() - self._since

    def play(self, events: Sequence[Event]) -> None:
        """Do what a log says."""
        for event in events:
            self._now, self._since = max(self._now, event.time), time.monotonic()
            uri = uri_of(getattr(event, "document", ""))
            if isinstance(event, Opened):
                document = self.workspace.open(uri, event.language_id, self._version, event.text)
                document.path = event.document
            elif isinstance(event, Changed):
                # One message for each event: changes of one message at several places are several cursors.
                self._version += 1
                self.workspace.change(uri, self._version, self._changes(uri, event.edits))
            elif isinstance(event, Closed):
                self.workspace.close(uri)
            elif isinstance(event, Focused):
                self.workspace.focus(uri)

    def settle(self) -> None:
        """The last edit is finished; an editor would say so by a save or by the next edit."""
        self.workspace.history.settle()

    def document(self, path: str) -> Document | None:
        """An open document."""
        return self.workspace.documents.get(uri_of(path))

    def hunks(self, path: str) -> tuple[Hunk, ...]:
        """The last edits of one document, oldest first, the one that is being made included."""
        history = self.workspace.history
        return tuple(hunk for hunk in (*history.settled(), *history.open_edit()) if hunk.path == path)

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


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate as an edit of the document.

    Attributes:
        maker: of the candidate.
        start: where its region begins.
        end: where it ends.
        text: what the region would become.
    """

    maker: str
    start: int
    end: int
    text: str

    def apply(self, document: str) -> str:
        """The document with it."""
        return document[: self.start] + self.text + document[self.end :]


class WatchedCompleter:
    """Answers as another one does, and remembers."""

    def __init__(self, inner: Completer) -> None:
        self.seen: list[tuple[CompleteRequest, CompleteAnswer]] = []
        self._inner = inner

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question. Raises CompleterError."""
        answer = await self._inner.complete(request)
        self.seen.append((request, answer))
        return answer

    async def info(self) -> ModelInfo:
        """What the model can do."""
        return await self._inner.info()

    async def aclose(self) -> None:
        """Nothing: the model belongs to who made it."""

    def proposals(self, document: str) -> tuple[Proposal, ...]:
        """What was proposed for edits of a document, question by question, best first; leaving all as it is is none."""
        found: list[Proposal] = []
        for request, answer in self.seen:
            region = request.parts.region
            if region is None:
                continue
            window = request.parts.prefix + region.text + request.parts.suffix
            at = document.find(window)
            if at < 0:
                continue
            start = at + len(request.parts.prefix)
            end = start + len(region.text)
            for candidate in answer.candidates:
                text = candidate.text
                if region.text.endswith("\n") and text and not text.endswith("\n"):
                    text += "\n"
                if text != region.text and candidate.finish_reason == "stop":
                    found.append(Proposal(candidate.maker, start, end, text))
        return tuple(found)
