"""An editor, a model that says what it is told to, and a clock that moves when it is told to."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from calomel.context.builder import BuiltContext, ContextBuilder
from calomel.context.window import EstimateCounter
from calomel.infer.client import ModelClient
from calomel.infer.completer import Candidate, CompleteAnswer, CompleteRequest, CompleterError, Kind, ModelInfo
from calomel.infer.door import Door
from calomel.infer.models import Models
from calomel.prompts.parts import PromptParts, RegionBounds
from calomel.selectivity.record import SourceClass
from calomel.suggest.edit import Answer, Suggestion
from calomel.suggest.offers import Outcome
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.snapshot import Trigger
from calomel.suggest.suggester import Suggester
from calomel.workspace.documents import Document, FullChange, RangeChange
from calomel.workspace.edits import apply
from calomel.workspace.privacy import Privacy
from calomel.workspace.settings import SuggestSettings
from calomel.workspace.workspace import Situation, Workspace

URI = "file:///work/a.py"
NOW = SuggestSettings(debounce_seconds=0.0)

# What a model says: a text, several candidates, or why it does not.
Reply = str | tuple[Candidate, ...] | CompleterError | Exception


def suggestion(answer: Answer) -> Suggestion:
    assert isinstance(answer, Suggestion), answer
    return answer


def reason(answer: Answer) -> SilenceReason:
    assert isinstance(answer, Silence), answer
    assert answer.message
    return answer.reason


def region(request: CompleteRequest) -> str:
    assert request.parts.region is not None
    return request.parts.region.text


class Time:
    """Seconds that pass by `advance` alone."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sleeping: list[tuple[float, asyncio.Future[None]]] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (self.now + seconds, future)
        self.sleeping.append(entry)
        try:
            await future
        finally:
            self.sleeping.remove(entry)

    async def advance(self, seconds: float) -> None:
        self.now += seconds
        for when, future in list(self.sleeping):
            if when <= self.now and not future.done():
                future.set_result(None)
        await settle()


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(30):
        await asyncio.sleep(0)


@dataclass
class ScriptedModel:
    """Answers by a function of the request, once `hold` is set, and says what it is once `loading` is."""

    reply: Callable[[CompleteRequest], Reply] = lambda _: "done()"
    kinds: tuple[Kind, ...] = ("fill", "edit")
    log_prob: float = -0.1
    finish_reason: Literal["stop", "length", "deadline"] = "stop"
    reads_ahead: bool = False
    source: SourceClass = "small"
    region: RegionBounds = field(default_factory=RegionBounds)
    hold: asyncio.Event | None = None
    loading: asyncio.Event | None = None
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    requests: list[CompleteRequest] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    address: str | None = None
    cancelled: int = 0
    closed: int = 0

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        self.requests.append(request)
        self.asked.set()
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await (asyncio.sleep(0) if self.hold is None else self.hold.wait())
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        said = self.reply(request)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, str):
            said = (Candidate(said, (self.log_prob,), finish_reason=self.finish_reason),)
        return CompleteAnswer(said, context_tokens=100, cached_tokens=90, model="scripted")

    async def info(self) -> ModelInfo:
        if self.loading is not None:
            await self.loading.wait()
        return ModelInfo("scripted", "0", self.kinds, 8192, 2048, None, "1", self.region, self.reads_ahead, self.source)

    async def aclose(self) -> None:
        self.closed += 1


@dataclass
class Elsewhere:
    """The same model at a server that Calomel did not start: it is asked through a door."""

    model: ScriptedModel
    door: Door
    address: str | None = None

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        sent = await self.door.send(request)
        return sent.read(await self.model.complete(sent.request))

    async def info(self) -> ModelInfo:
        return await self.model.info()

    async def aclose(self) -> None:
        await self.model.aclose()


class WholeFile(ContextBuilder):
    """Shows the model the whole file."""

    def __init__(self) -> None:
        super().__init__(EstimateCounter())

    def build(self, situation: Situation, budget: int) -> BuiltContext:
        text, at = situation.text, situation.offset
        parts = PromptParts(path=situation.path, prefix=text[:at], suffix=text[at:])
        return replace(super().build(situation, budget), parts=parts)


class Outcomes:
    """Keeps outcomes in a list."""

    def __init__(self) -> None:
        self.all: list[Outcome] = []

    def record(self, outcome: Outcome) -> None:
        self.all.append(outcome)

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(outcome.outcome, outcome.reason) for outcome in self.all]


class Editor:
    """One document in one editor."""

    def __init__(
        self,
        model: ScriptedModel,
        settings: SuggestSettings,
        privacy: Privacy | None,
        *,
        own: bool = False,
        builder: ContextBuilder | None = None,
    ) -> None:
        """`own`: the model is asked without a door, although there are rules."""
        self.time = Time()
        self.model = model
        self.outcomes = Outcomes()
        self.workspace = Workspace([], self.time.clock, privacy=privacy)
        asked = model if own or privacy is None else Elsewhere(model, Door(self.workspace))
        self.client = ModelClient.of(asked, clock=self.time.clock, sleep=self.time.sleep)
        self.suggester = Suggester(
            self.workspace,
            Models.of(self.client),
            settings,
            builder=builder or WholeFile(),
            outcomes=self.outcomes,
            rng=random.Random(1),
        )
        self.cursor = 0
        self._version = 1

    def open(self, text: str, language_id: str = "python", cursor: int | None = None) -> Editor:
        """`|` is the cursor, unless it is given."""
        if cursor is None:
            cursor, text = text.index("|"), text.replace("|", "", 1)
        self.cursor = cursor
        self.workspace.open(URI, language_id, self._version, text)
        return self

    @property
    def document(self) -> Document:
        document = self.workspace.documents.get(URI)
        assert document is not None
        return document

    @property
    def text(self) -> str:
        return self.document.text[: self.cursor] + "|" + self.document.text[self.cursor :]

    def after(self, answer: Answer) -> str:
        """The document with an answer; nothing when there is none."""
        return apply(self.document.text, answer.edits) if isinstance(answer, Suggestion) else ""

    def change(self, edit: tuple[int, int, str]) -> None:
        """One message with one change; the cursor goes to its end."""
        start, end, text = edit
        self.several(RangeChange(self.document.position_at(start), self.document.position_at(end), text))
        self.cursor = start + len(text)

    def several(self, *changes: RangeChange | FullChange) -> None:
        self._version += 1
        self.workspace.change(URI, self._version, changes)

    def type(self, text: str) -> None:
        self.change((self.cursor, self.cursor, text))

    def backspace(self, count: int = 1) -> None:
        self.change((self.cursor - count, self.cursor, ""))

    async def inline(self, trigger: Trigger = Trigger.EDIT, *, wait: float = 1.2) -> Answer:
        """Ask, and let so much time pass that any pause ends."""
        asking = asyncio.ensure_future(self.suggester.inline(URI, self.cursor, trigger))
        return await self._answered(asking, wait)

    async def next_edit(self, trigger: Trigger = Trigger.EDIT, *, wait: float = 1.2) -> Answer:
        asking = asyncio.ensure_future(self.suggester.next_edit(URI, None, self.cursor, trigger=trigger))
        return await self._answered(asking, wait)

    async def _answered(self, asking: asyncio.Future[Answer], wait: float) -> Answer:
        await settle()
        if not asking.done():
            await self.time.advance(wait)
        return await asking


@asynccontextmanager
async def editing(
    text: str,
    reply: Callable[[CompleteRequest], Reply] | str = "done()",
    *,
    settings: SuggestSettings | None = None,
    privacy: Privacy | None = None,
    model: ScriptedModel | None = None,
    own: bool = False,
    builder: ContextBuilder | None = None,
) -> AsyncIterator[Editor]:
    """An editor with `text`, whose model says `reply`; in the end no task is left."""
    model = model or ScriptedModel()
    model.reply = (lambda _: reply) if isinstance(reply, str) else reply
    before = asyncio.all_tasks()
    editor = Editor(model, settings or SuggestSettings(debounce_seconds=0.1), privacy, own=own, builder=builder)
    editor.open(text)
    if model.reads_ahead:
        await editor.client.ready()
        editor.suggester.reading.again()
    yield editor
    await editor.suggester.aclose()
    await editor.client.aclose()
    await settle()
    assert asyncio.all_tasks() - before == set()
    assert editor.time.sleeping == []
