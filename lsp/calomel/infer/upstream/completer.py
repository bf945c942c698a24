"""Answers questions with a model behind an upstream server instead of an engine in this process.

The server is asked what it can do before the first question, and again after it was gone: it may have another model
now. Its log-probabilities, if it reports any, give an answer's confidence. It judges no drafts: filters and what is
known of their rules decide about them.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Self, TypeVar, cast

from calomel.engine import Constraint, Result, SamplingParams
from calomel.infer.cleaning import Cleaning
from calomel.infer.completer import (
    DEFAULT_CONTEXT,
    FIRST_LINE,
    GROWING,
    MAX_CONTEXT,
    Candidate,
    CanvasText,
    CompleteAnswer,
    CompleteRequest,
    EngineTimings,
    Fill,
    FillRequest,
    ModelInfo,
    Occupancy,
    UnsupportedError,
    causal,
    version,
    with_ends,
    with_ends_of,
    with_line_feeds,
)
from calomel.infer.continuation import last_piece
from calomel.infer.door import Door, Sent
from calomel.infer.runtime_file import socket_in
from calomel.infer.upstream.adapter import RIVALS, Adapter, Ask, Known, Piece
from calomel.infer.upstream.adapters import adapter_of
from calomel.infer.upstream.answer import Answer
from calomel.infer.upstream.exchange import Exchange, Target, UpstreamError
from calomel.infer.upstream.room import fitted, in_time, size
from calomel.infer.upstream.running import TITLES
from calomel.prompts.grammar import AnswerForm
from calomel.prompts.next_edit import EDIT_FORMATS, MERCURY_REGION, EditFormat, format_called
from calomel.prompts.parts import RegionBounds
from calomel.selectivity.record import SourceClass

_log = logging.getLogger("calomel.server")

_Found = TypeVar("_Found")
_LINE: Final = re.compile(r"(\s*\S[^\r\n]*)[\r\n]")

# Room for the markers around an answer in the model's own format.
_MARKER_TOKENS: Final = 16
# Servers unload an idle model (Ollama after five minutes); the next answer is slow then.
_ASLEEP_SECONDS: Final = 60.0
# The model or a route does not exist any more.
_CHANGED: Final = frozenset({404, 501})
_NONE: Final = "it gives no log-probabilities, so only filters and past results decide"
_SOME: Final = "it gives log-probabilities for some tokens only, so mostly filters and past results decide"


@dataclass(frozen=True, slots=True)
class _Account:
    """The part of an engine's `Result` that is known here."""

    prefill_seconds: float = 0.0
    denoise_seconds: float = 0.0


class UpstreamCompleter:
    """A `Completer` on another server, with the interface of `calomel.infer.filler.Filler` on an engine.

    Args:
        target: the server.
        door: by which requests leave; None for one that knows no files.
    """

    def __init__(self, target: Target, door: Door | None = None) -> None:
        self.target = target
        self._door = door or Door()
        self._exchange = Exchange(target)
        self._adapter: Adapter | None = None
        self._last = Known(target.model or "upstream")
        self._looking: asyncio.Task[Adapter] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._trouble = ""
        # Whoever asks first is told what is wrong by the error.
        self._logs = False
        self._heard = time.monotonic()
        # The share of the window that prompts take by our estimate of tokens: less where the text has more of them.
        self._share = 1.0
        # The last question, what its answer had to begin with, and what came.
        self._remembered: tuple[Ask | None, str, tuple[Piece, ...]] = None, "", ()
        # Tokens of an answer came without log-probabilities: a draft model may have proposed them.
        self._unscored = False
        # Seconds that the server takes to read a token of a prompt; 0 while unknown.
        self._reading = 0.0

    @property
    def address(self) -> str:
        """Where the server listens."""
        return self.target.url

    def look(self) -> None:
        """Ask what the server can do, in a separate event loop. Raises UpstreamError."""

        async def once() -> None:
            try:
                await self._ready()
            finally:
                self._logs = True
                await self.aclose()

        asyncio.run(once())

    @property
    def model(self) -> ModelInfo:
        """What is known of the model so far, without waiting."""
        last, form = self._last, self._trained
        source: SourceClass = "edits" if form is not None else "fim"
        source = "hosted" if last.edits else source
        identity = hashlib.sha256(f"{self.target.base}\0{last.model}".encode()).hexdigest()[:16]
        window = min(last.window, MAX_CONTEXT)
        return ModelInfo(
            id=last.model[:256],
            weights=identity,
            kinds=("fill", "edit"),
            max_context=window,
            # Prompts of other makers' servers cost no time of this machine's engine.
            default_context=min(_EDITS_CONTEXT if source in {"edits", "hosted"} else DEFAULT_CONTEXT, window),
            tokenizer=None,
            version=version(),
            region=MERCURY_REGION if last.edits else RegionBounds() if form is None else form.region,
            reads_ahead=self.reads_ahead,
            source=source,
            through=self._through,
        )

    @property
    def reads_ahead(self) -> bool:
        """Whether the server keeps what it has read, and is the user's own: `http:` leaves no trusted network."""
        return self._adapter is not None and self._adapter.keeps and not self.target.url.startswith("https:")

    def occupancy(self) -> Occupancy:
        """Nothing is known of how busy the other server is."""
        return Occupancy()

    def for_client(self, client: str) -> Self:  # noqa: ARG002 (the other server knows one client)
        """The same server."""
        return self

    def constraint(self, form: AnswerForm) -> Constraint:  # noqa: ARG002
        """Raises UnsupportedError."""
        raise UnsupportedError("the upstream model does not support schemas: remove it")

    @property
    def note(self) -> str:
        """One sentence for people: which server and model, and where confidences come from; or what is wrong."""
        if self._adapter is None:
            return self._trouble or f"the server at {self.target.base} has no answer yet"
        text = _NONE if not self._last.log_probs else _SOME if self._unscored else "it gives log-probabilities"
        text += "; it has no fill-in-the-middle tokens and continues the text before a gap" if self._continues else ""
        return f"{self._adapter.name} at {self.target.base} with {self._last.model}; {text}"

    @property
    def _through(self) -> str:
        name = "" if self._adapter is None else self._adapter.name
        place = "on this machine" if socket_in(self.target.url) else f"at {self.target.base}"
        return f"{TITLES.get(name, 'a server')} {place}"

    async def info(self) -> ModelInfo:
        """What the model can do; asks the server. Raises UpstreamError."""
        await self._ready()
        return self.model

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Rewrite the region, or fill the hole; drafts come with no likelihood. Raises UpstreamError."""
        sent = await self._door.send(request)
        if request.ahead:
            return await self._read_ahead(sent.request)
        return sent.read(await self._complete(sent))

    async def _read_ahead(self, request: CompleteRequest) -> CompleteAnswer:
        """Have the server read the prompt, unless it answered it last; the answer is empty."""
        adapter = await self._ready()
        ask = self._ask(request)
        owed = last_piece(ask.parts.prefix, request.stop) if adapter.continues else ""
        ask = replace(_healed(ask, owed, tells=False), max_tokens=1, rivals=1)
        last = self._remembered[0]
        if last is None or last.parts != ask.parts:
            async with aclosing(adapter.fill(ask)) as pieces:
                async for _ in pieces:
                    self._heard = time.monotonic()
        return CompleteAnswer((), model=self.model.id)

    async def _complete(self, sent: Sent) -> CompleteAnswer:
        request, began = sent.request, time.monotonic()
        until = None if request.deadline is None else began + request.deadline
        answer = Answer()
        own: tuple[Candidate, ...] = ()
        if request.kind == "edit":
            try:
                own = await self._rewritten(request, answer, until) if request.own else ()
            except UpstreamError:
                # Drafts need no model.
                if not request.drafts:
                    raise
        else:
            grows, shows = GROWING.get(), FIRST_LINE.get()
            grows("")
            line = ""
            async for _ in self._grown(request, answer, until):
                grows(answer.growing)
                if not line and (line := _first_line(answer.growing)) and answer.finish is None:
                    shows(sent.read(CompleteAnswer((self._candidate(answer, line),), judged=False)))
            own = (self._candidate(answer, self._cleaning(request).cut(answer.text)[0]),)
        return CompleteAnswer(
            (*own, *(Candidate(draft.text, maker=draft.maker) for draft in request.drafts)),
            context_tokens=answer.prompt_tokens or answer.estimate,
            cached_tokens=answer.cached_tokens,
            model=self.model.id,
            timings=EngineTimings(total=time.monotonic() - began),
            judged=False,
        )

    def _candidate(self, answer: Answer, text: str) -> Candidate:
        return causal(Candidate(text, answer.log_probs(len(text)), finish_reason=answer.finish or "stop"))

    async def afill(self, request: FillRequest) -> Fill:
        """Fill the hole; cancelling the task frees the server's slot. Raises UpstreamError."""
        began, answer = time.monotonic(), Answer()
        sent = await self._door.send(with_line_feeds(request))
        until = None if request.deadline is None else began + request.deadline
        async for _ in self._grown(sent.request, answer, until):
            pass
        return with_ends(request, await self._finished(sent, answer, began))

    def fill(self, request: FillRequest) -> Fill:
        """The same in an event loop of its own; blocks."""

        async def once() -> Fill:
            try:
                return await self.afill(request)
            finally:
                await self.aclose()

        return asyncio.run(once())

    async def stream(self, request: FillRequest) -> AsyncGenerator[str | Fill]:
        """Yield the text as it becomes final, then the `Fill`. Raises UpstreamError."""
        async with aclosing(self._streamed(with_line_feeds(request))) as items:
            async for item in items:
                yield with_ends_of(request, item) if isinstance(item, str) else with_ends(request, item)

    async def _streamed(self, request: FillRequest) -> AsyncGenerator[str | Fill]:
        began, answer, told = time.monotonic(), Answer(), ""
        sent = await self._door.send(request)
        until = None if request.deadline is None else began + request.deadline
        async with aclosing(self._grown(sent.request, answer, until)) as growing:
            async for _ in growing:
                text = await self._cleaning(sent.request).growing(answer.growing)
                if text.startswith(told) and len(text) > len(told) and not sent.forbids(text):
                    yield text[len(told) :]
                    told = text
        fill = await self._finished(sent, answer, began, told)
        if fill.text.startswith(told) and len(fill.text) > len(told):
            yield fill.text[len(told) :]
        yield fill

    async def canvases(self, request: FillRequest) -> AsyncGenerator[CanvasText | Fill]:
        """Yield the answer after every piece of it, then the `Fill`. Raises UpstreamError."""
        began, answer = time.monotonic(), Answer()
        sent = await self._door.send(with_line_feeds(request))
        plain = sent.request
        until = None if request.deadline is None else began + request.deadline
        async with aclosing(self._grown(plain, answer, until)) as growing:
            async for _ in growing:
                if sent.forbids(answer.text):
                    continue
                text = with_ends_of(request, self._cleaning(plain).cut(answer.text)[0])
                pieces = tuple(piece.text[max(0, -at) :] for at, piece in answer.own_pieces)
                yield CanvasText(len(pieces), text, pieces, (True,) * len(pieces))
        yield with_ends(request, await self._finished(sent, answer, began))

    async def aclose(self) -> None:
        """Close the connections."""
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
        await self._exchange.aclose()

    def close(self) -> None:
        """The same, from a thread other than the event loop's."""
        if self._loop is not None and self._loop.is_running():
            asyncio.run_coroutine_threadsafe(self.aclose(), self._loop).result()

    # Asking.

    async def _ready(self) -> Adapter:
        """The adapter, once it knows its server. Cancelling the wait does not cancel that: models load slowly."""
        self._loop = asyncio.get_running_loop()
        if self._adapter is not None:
            return self._adapter
        if self._looking is None:
            self._looking = asyncio.create_task(self._looked())
            self._looking.add_done_callback(_told)
        return await asyncio.shield(self._looking)

    async def _looked(self) -> Adapter:
        try:
            self._exchange.target = self.target
            adapter = await adapter_of(self._exchange)
            self._last = await adapter.look()
        except UpstreamError as error:
            if self._logs and str(error) != self._trouble:
                _log.warning("%s", error)
            self._trouble = str(error)
            raise
        else:
            self._adapter, self._heard, self._logs = adapter, time.monotonic(), True
            self._share, self._reading, self._remembered, self._unscored = 1.0, 0.0, (None, "", ()), False
            _log.info("%s", self.note)
            return adapter
        finally:
            self._looking = None

    def _ask(self, request: CompleteRequest) -> Ask:
        sampling = request.sampling if isinstance(request, FillRequest) else None
        window = self._last.window
        room = min(request.max_context, max(window // 2, window - request.max_tokens))
        whole = request.kind == "fill" or not (self._last.edits or self._trained)
        parts = fitted(request.parts, int(room * self._share), whole=whole)
        if request.kind == "fill" and self._adapter is not None and self._adapter.rereads and self._reading:
            parts = replace(parts, suffix=in_time(parts.suffix, self._reading))
        most = max(1, min(request.max_tokens, window - room))
        return Ask(parts, most, request.stop, sampling or SamplingParams())

    @property
    def _trained(self) -> EditFormat | None:
        """The format in which the model was trained to rewrite regions, if any."""
        return EDIT_FORMATS.get(self.target.edit or format_called(self._last.model) or "")

    async def _rewritten(self, request: CompleteRequest, answer: Answer, until: float | None) -> tuple[Candidate, ...]:
        """The model's rewrite of the region; empty if it cannot rewrite regions or its answer is malformed."""
        adapter = await self._within(until, self._ready())
        ask = self._ask(request)
        if self._last.edits:
            return (Candidate(await self._within(until, adapter.rewrite(ask))),)
        form = self._trained
        if form is None or request.parts.region is None:
            return ()
        replies = []

        def written() -> Ask:
            ask = self._ask(request)
            prompt, reply = form.write(ask.parts)
            replies.append(reply)
            most = ask.max_tokens + _MARKER_TOKENS
            return replace(ask, prompt=prompt, stop=(*form.ends, *ask.stop), max_tokens=most)

        async for _ in self._grown(request, answer, until, written):
            pass
        text = replies[-1].read(answer.text)
        if text is None:
            return ()
        return (Candidate(text, answer.log_probs(len(answer.text)), finish_reason=answer.finish or "stop"),)

    async def _grown(
        self, request: CompleteRequest, answer: Answer, until: float | None, ask_of: Callable[[], Ask] | None = None
    ) -> AsyncGenerator[None]:
        """Extend `answer` piece by piece, until the first stop string, its end or the deadline.

        A model that continues a text writes the word at the cursor again; if it writes another one, it is asked anew.
        So is a server whose window the prompt exceeds, for less of it.
        """
        ask_of = ask_of or partial(self._ask, request)
        adapter = await self._within(until, self._ready())
        for tries in range(_TRIES):
            share, ask = self._share, ask_of()
            try:
                async with aclosing(self._begun(adapter, request, answer, until, ask)) as states:
                    async for _ in states:
                        yield
            except UpstreamError as error:
                if not error.window or answer.pieces or tries == _TRIES - 1:
                    raise
                await self._within(until, self._shorten(adapter, request, ask, share))
            else:
                return

    async def _begun(
        self, adapter: Adapter, request: CompleteRequest, answer: Answer, until: float | None, ask: Ask
    ) -> AsyncGenerator[None]:
        answer.estimate = sum(map(size, _texts(ask)))
        answer.trimmed = len(ask.parts.prefix) < len(request.parts.prefix)
        heals = adapter.continues and ask.prompt is None
        answer.form = adapter.form if ask.prompt is None else None
        answer.begin(last_piece(ask.parts.prefix, request.stop) if heals else "")
        healed = _healed(ask, answer.owed, tells=adapter.begins)
        async with aclosing(self._written(adapter, request, answer, until, healed)) as states:
            async for _ in states:
                yield
        if answer.strays:
            answer.begin("")
            async with aclosing(self._written(adapter, request, answer, until, ask)) as states:
                async for _ in states:
                    yield

    async def _written(
        self, adapter: Adapter, request: CompleteRequest, answer: Answer, until: float | None, ask: Ask
    ) -> AsyncGenerator[None]:
        if self._remembers(request, answer, ask):
            yield
            return
        try:
            async with aclosing(adapter.fill(ask)) as pieces:
                while answer.finish is None and not answer.strays:
                    piece = await self._within(until, anext(pieces))
                    self._heard = time.monotonic()
                    if piece.read >= _MEASURED:
                        self._reading = piece.reading / piece.read
                    self._unscored |= bool(piece.text) and not piece.is_scored
                    self._take(request, answer, piece)
                    yield
        except UpstreamError as error:
            if error.code == "timeout" and answer.text:
                answer.finish = "deadline"
                yield
                return
            self._doubt(error)
            raise
        self._remembered = ask, answer.owed, tuple(answer.pieces)

    def _take(self, request: CompleteRequest, answer: Answer, piece: Piece) -> None:
        answer.take(piece, request.floor if request.kind == "fill" else None)
        if answer.finish is None and self._cleaning(request).cut(answer.text)[1]:
            answer.finish = "stop"

    def _remembers(self, request: CompleteRequest, answer: Answer, ask: Ask) -> bool:
        """Whether the last answer is for this question, too: while a word is typed, its healed prompt stays."""
        before, owed, pieces = self._remembered
        if before is None or len(answer.owed) <= len(owed) or _same(before) != _same(ask):
            return False
        for piece in pieces:
            if answer.finish is None and not answer.strays:
                self._take(request, answer, piece)
        # A server that can be told how an answer begins would not stray.
        done = not ask.begin if answer.strays else answer.finish is not None
        if not done:
            answer.begin(answer.owed)
        return done

    async def _shorten(self, adapter: Adapter, request: CompleteRequest, ask: Ask, share: float) -> None:
        """Show less of a text with more tokens than we estimate: as the server counts them, if it does."""
        counted = await adapter.count(ask)
        room = min(request.max_context, self._last.window - ask.max_tokens)
        if counted > room > 0:
            self._share = max(_LEAST_SHARE, share * room / counted * _CLOSE)

    @property
    def _continues(self) -> bool:
        return self._adapter is not None and self._adapter.continues

    def _cleaning(self, request: CompleteRequest) -> Cleaning:
        return Cleaning(request, self._continues)

    def _doubt(self, error: UpstreamError) -> None:
        """Ask anew what the server can do: it may come back with another model, or has to load an idle one first.

        If the refusal names a window, the next question uses it, or less of it where it was known.
        """
        if error.window:
            if error.window >= self._last.window:
                self._share = max(_LEAST_SHARE, _LESS * self._share)
            self._last = replace(self._last, window=min(error.window, self._last.window))
        asleep = error.code == "timeout" and time.monotonic() - self._heard > _ASLEEP_SECONDS
        if error.gone or asleep or error.status in _CHANGED:
            self._adapter, self._trouble = None, str(error)

    async def _within(self, until: float | None, work: Awaitable[_Found]) -> _Found:
        try:
            async with asyncio.timeout(None if until is None else max(0.0, until - time.monotonic())):
                return await work
        except TimeoutError:
            message = f"the server at {self.target.base} did not answer in time: use a smaller model or less context"
            raise UpstreamError("timeout", message) from None

    async def _finished(self, sent: Sent, answer: Answer, began: float, told: str = "") -> Fill:
        """The answer as a whole; where it may not be shown, only what was `told` already."""
        finish = answer.finish or "stop"
        cleaning = self._cleaning(sent.request)
        text, stopped = await asyncio.to_thread(cleaning.whole, answer.text, ended=finish == "stop")
        finish = "stop" if stopped else finish
        text = told if sent.forbids(text) else text
        scores, tokens, seconds = answer.log_probs(len(text)), answer.tokens, time.monotonic() - began
        return Fill(
            text=text,
            finish_reason=finish,
            confidence=math.exp(sum(scores) / len(scores)) if scores else 0.0,
            prompt_tokens=answer.prompt_tokens or answer.estimate,
            estimated=not answer.prompt_tokens,
            completion_tokens=tokens,
            cached_tokens=answer.cached_tokens,
            steps=tokens,
            forwards=tokens,
            seconds=seconds,
            result=cast("Result", _Account(denoise_seconds=seconds)),
            trimmed=answer.trimmed,
        )


def _first_line(text: str) -> str:
    """The first line with text, if it is complete; else nothing."""
    found = _LINE.match(text)
    return "" if found is None else found[1]


def _healed(ask: Ask, owed: str, *, tells: bool) -> Ask:
    """The question for the text from the start of the word at the cursor; `tells` the server that it begins so."""
    if not owed:
        return ask
    parts, most = replace(ask.parts, prefix=ask.parts.prefix.removesuffix(owed)), ask.max_tokens + len(owed)
    rivals = RIVALS if most <= _LONGEST_RIVALLED else 1
    return replace(ask, parts=parts, max_tokens=most, begin=owed if tells else "", rivals=rivals)


def _texts(ask: Ask) -> Iterable[str]:
    """What its prompt is made of."""
    parts = ask.parts
    return (ask.prompt,) if ask.prompt else (parts.prefix, parts.suffix, *(each.text for each in parts.related))


def _same(ask: Ask) -> Ask:
    """What decides about an answer, but for its length and beginning."""
    return replace(ask, max_tokens=0, begin="", rivals=0)


def _told(task: asyncio.Task[Adapter]) -> None:
    """Retrieve a task's error, which asyncio would report if nobody waited for it."""
    if not task.cancelled():
        task.exception()


# What Zed gives its own model; Sweep's has 8,192.
_EDITS_CONTEXT: Final = 8192
# Rivals come with every token, in a kilobyte each, though only those of the first few tell something.
_LONGEST_RIVALLED: Final = 512
# Of fewer tokens, the time says nothing of a token.
_MEASURED: Final = 16
# What a refused prompt is cut to; text has at least half a byte per token.
_LESS: Final = 0.7
_LEAST_SHARE: Final = 0.15
# Of a count, for what is not counted: related files that come or go with it.
_CLOSE: Final = 0.95
_TRIES: Final = 5
