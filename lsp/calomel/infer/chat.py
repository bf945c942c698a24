"""Generates the next message of a conversation, with a checkpoint that has a chat template."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from calomel.engine import CanvasState, Constraint, Request, Result, SamplingParams
from calomel.infer.completer import CanvasText, canvas_text, cut_at_stop, plain_ending, settled, settled_ids
from calomel.prompts.chat import (
    THOUGHT_OPENING,
    Call,
    Function,
    Message,
    calls_form,
    json_or_calls_form,
    read_reply,
    shown_so_far,
    split_thought,
    text_or_calls_form,
)
from calomel.prompts.chat_template import ChatPrompt, ChatTemplate
from calomel.prompts.grammar import AnswerForm, GrammarError, embedded, json_form, pattern_form

if TYPE_CHECKING:
    from calomel.infer.filler import Filler


Effort = Literal["instant", "low", "medium", "high"]
Calling = Literal["auto", "required", "none"]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A conversation and how to continue it.

    Attributes:
        messages: so far.
        functions: that the model may call.
        calling: whether it may, must or must not; `named` is the one that it must call.
        parallel: whether it may call several at once.
        schema: of the JSON to answer with; None for text.
        pattern: regular expression that the answer must match; None for any text.
        max_tokens: limit of the answer; the model's positions limit it, too.
        stop: the answer ends before the first of these strings.
        sampling: None for the most probable tokens.
        effort: how many denoising steps the model takes.
    """

    messages: tuple[Message, ...]
    functions: tuple[Function, ...] = ()
    calling: Calling = "auto"
    named: str | None = None
    parallel: bool = True
    schema: Mapping[str, Any] | None = None
    pattern: str | None = None
    max_tokens: int = 1024
    stop: tuple[str, ...] = ()
    sampling: SamplingParams | None = None
    effort: Effort = "medium"

    @property
    def offered(self) -> tuple[Function, ...]:
        """The functions that are in the prompt."""
        return () if self.calling == "none" else self.functions

    @property
    def callable(self) -> tuple[Function, ...]:
        """The functions whose calls count as calls."""
        return tuple(each for each in self.offered if self.named in {None, each.name})

    @property
    def free(self) -> bool:
        """Whether the answer may contain any text, so that the model may think first."""
        must_call = bool(self.callable) and (self.calling == "required" or self.named is not None)
        return self.schema is None and self.pattern is None and not must_call


def form_of(request: ChatRequest) -> AnswerForm | None:
    """The required form of the answer; None for any text.

    Raises:
        GrammarError: a schema or pattern is too large, too deep, or refers to something outside of itself.
    """
    functions = request.callable
    if functions and (request.calling == "required" or request.named is not None):
        return calls_form(functions, most=None if request.parallel and request.named is None else 1)
    if request.schema is not None:
        return json_or_calls_form(embedded(request.schema), functions) if functions else json_form(request.schema)
    if request.pattern is not None:
        return pattern_form(request.pattern)
    strict = any(function.strict for function in functions)
    return text_or_calls_form(functions) if strict else None


ChatFinish = Literal["stop", "length", "deadline", "tool_calls"]

# Tokens: prose and code of models of this kind is denoised in blocks of this size (SDAR).
_CANVAS: Final = 32
# Seconds; compiling has a budget of its own, this is the timeout on a busy machine.
_COMPILE_SECONDS: Final = 5.0
# Tokens at the end of a prompt in which the template may open a thought.
_TAIL: Final = 16
# The probability that reveals a token, and the canvas length per denoising step: effort is the number of steps.
_EFFORTS: Final[dict[Effort, tuple[float, int]]] = {
    "instant": (0.5, 8),
    "low": (0.7, 4),
    "medium": (0.9, 2),
    "high": (0.95, 1),
}


@dataclass(frozen=True, slots=True)
class Reply:
    """The next message.

    Attributes:
        content: for the reader.
        thought: what the model wrote before it, if it thinks.
        calls: functions that it wants called, each with an id.
        finish_reason: `stop`, `tool_calls`, `length` for `max_tokens`, `deadline`.
        thought_tokens: how many of the `completion_tokens` are the thought.
        seconds: from the request to the answer.
    """

    content: str
    thought: str
    calls: tuple[Call, ...]
    finish_reason: ChatFinish
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    thought_tokens: int
    steps: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A request prepared for the engine, and when it began; `lead` is the start of the answer given by the prompt."""

    request: ChatRequest
    context: tuple[int, ...]
    constraint: Constraint | None
    lead: str
    began: float


class Chat:
    """Answers conversations with one model and its template. Safe to share between tasks.

    Args:
        model: an engine, its tokenizer and its grammars.
        template: of its checkpoint.
        new_id: makes the id for a call.
    """

    def __init__(self, model: Filler, template: ChatTemplate, new_id: Callable[[], str]) -> None:
        self._model = model
        self._prompt = ChatPrompt(template, model.tokenizer)
        self._new_id = new_id

    async def reply(self, request: ChatRequest) -> Reply:
        """The next message; cancelling the task cancels the engine's request.

        Raises:
            GrammarError: the form of the answer is not possible.
            ChatTemplateError: the template rejects the messages.
            EngineError: the engine refused or failed.
        """
        prepared = await self._prepare(request)
        handle = self._model.engine.submit(self._request(prepared))
        return self._finish(prepared, await handle.wait())

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | Reply]:
        """Yield the content piece by piece as it becomes final, then the `Reply`. Raises as `reply`."""
        sent, count = "", -1
        prepared = await self._prepare(request)
        async with aclosing(self._watch(prepared)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    shown = item.content
                else:
                    ids = settled_ids(item, request.max_tokens, self._model.tokenizer.end)
                    if len(ids) == count:
                        continue
                    count, shown = len(ids), self._shown(prepared, ids)
                if shown.startswith(sent) and len(shown) > len(sent):
                    yield shown[len(sent) :]
                    sent = shown
                if isinstance(item, Reply):
                    yield item

    async def canvases(self, request: ChatRequest) -> AsyncGenerator[CanvasText | Reply]:
        """Yield the whole answer after every denoising step, each replacing the last, then the `Reply`."""
        prepared = await self._prepare(request)
        async with aclosing(self._watch(prepared)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    yield item
                else:
                    state = canvas_text(item, self._model.tokenizer, request.max_tokens)
                    text = prepared.lead + cut_at_stop(state.text, request.stop)[0]
                    yield replace(state, text=split_thought(text)[1])

    async def _watch(self, prepared: _Prepared) -> AsyncGenerator[CanvasState | Reply]:
        handle = self._model.engine.submit(replace(self._request(prepared), record_canvases=True))
        try:
            async for state in handle.astates():
                yield state
            yield self._finish(prepared, await handle.wait())
        finally:
            handle.cancel()

    async def _prepare(self, request: ChatRequest) -> _Prepared:
        """Render and compile, in a thread: a client can make both use up their budgets."""
        began = time.monotonic()
        try:
            context, constraint = await asyncio.wait_for(asyncio.to_thread(self._read, request), _COMPILE_SECONDS)
        except TimeoutError:
            raise GrammarError("the schema or pattern is too complex") from None
        opened = request.free and self._model.tokenizer.decode(context[-_TAIL:]).rstrip().endswith(THOUGHT_OPENING)
        return _Prepared(request, context, constraint, THOUGHT_OPENING if opened else "", began)

    def _read(self, request: ChatRequest) -> tuple[tuple[int, ...], Constraint | None]:
        effort = request.effort
        context = self._prompt.render(
            request.messages,
            request.offered,
            reasoning_effort=effort,
            enable_thinking=effort != "instant" and request.free,
        )
        form = form_of(request)
        return tuple(context), None if form is None else self._model.grammars.compile(form)

    def _request(self, prepared: _Prepared) -> Request:
        chat, config = prepared.request, self._model.engine.config
        # If there is no room, the engine raises the error.
        room = max(1, min(chat.max_tokens, self._model.engine.positions - len(prepared.context)))
        longest, generation = config.diffusion.max_canvas, self._model.whole
        if generation is None:
            length = min(_CANVAS, longest, room + 1)
            threshold, share = _EFFORTS[chat.effort]
            policy, steps, sampling = f"threshold:{threshold}", max(1, length // share), SamplingParams()
        else:
            # Its makers' settings; effort only goes to the template.
            length = generation.length(longest, room)
            policy, steps, sampling = generation.policy, generation.max_steps, generation.sampling or SamplingParams()
        return Request(
            context=prepared.context,
            max_new_tokens=room,
            canvas_length=length,
            sampling=chat.sampling or sampling,
            policy=policy,
            max_steps=steps if prepared.constraint is None else max(steps, length),
            until=plain_ending(self._model.tokenizer, chat.stop),
            constraint=prepared.constraint,
            client=self._model.client,
        )

    def _shown(self, prepared: _Prepared, ids: Sequence[int]) -> str:
        request = prepared.request
        text, stopped = cut_at_stop(self._model.tokenizer.decode(ids), request.stop)
        return shown_so_far(prepared.lead + (text if stopped else settled(text, request.stop)), request.callable)

    def _finish(self, prepared: _Prepared, result: Result) -> Reply:
        request, tokenizer = prepared.request, self._model.tokenizer
        text, stopped = cut_at_stop(tokenizer.decode(result.ids), request.stop)
        reading = read_reply(prepared.lead + text, request.callable)
        calls = tuple(replace(call, id=self._new_id()) for call in reading.calls)
        reason: ChatFinish = "stop" if stopped else result.finish_reason
        return Reply(
            content=reading.content,
            thought=reading.thought,
            calls=calls,
            finish_reason="tool_calls" if calls and reason == "stop" else reason,
            prompt_tokens=result.cached_tokens + result.computed_tokens,
            completion_tokens=len(tokenizer.encode(text)) if stopped else len(result.ids),
            cached_tokens=result.cached_tokens,
            thought_tokens=len(tokenizer.encode(reading.thought)) if reading.thought else 0,
            steps=result.steps,
            seconds=time.monotonic() - prepared.began,
        )
