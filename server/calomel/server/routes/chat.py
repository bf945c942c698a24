"""POST /v1/chat/completions: the next message of a conversation, for checkpoints that have a chat template."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from fastapi import Request
from pydantic import BaseModel, Field, field_validator, model_validator
from starlette.responses import Response

from calomel.infer.chat import Chat, ChatRequest
from calomel.infer.completer import CanvasText
from calomel.infer.filler import Filler
from calomel.prompts.chat import Call, Function, Message
from calomel.prompts.chat_template import ChatTemplate, ChatTemplateError
from calomel.prompts.grammar import GrammarError
from calomel.server import wire
from calomel.server.answers import DONE
from calomel.server.app_state import AnswerFormat, RequestContext, app_state_of, request_context, while_there
from calomel.server.errors import InvalidParameterError, ModelFailedError, RefusedError
from calomel.server.metrics import Spent
from calomel.server.middleware import protected_router
from calomel.weights import nano_path

if TYPE_CHECKING:
    from calomel.infer.chat import Reply


# Published.
MAX_CHAT_TOKENS: Final = 50_000
# Ours: far beyond what people write, small enough that the largest body is read quickly.
MAX_MESSAGES: Final = 4_096
MAX_TOOLS: Final = 128
MAX_CALLS: Final = 128

FunctionName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
ChatFinishReason = Literal["stop", "length", "tool_calls"]

# Names in other APIs for our values.
_EFFORTS: Final = {"none": "instant", "minimal": "instant", "xhigh": "high", "max": "high"}
_ROLES: Final = {"developer": "system", "function": "tool"}


class CalledFunction(BaseModel):
    """Published FunctionCall; `arguments` is JSON in a string."""

    name: wire.Name | None = None
    arguments: wire.Text


class CallParam(BaseModel):
    """Published ToolCall, in a message of the conversation."""

    id: wire.Name
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessageParam(BaseModel):
    """Published Message; `developer` is another word for `system`."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: wire.Content | None = None
    name: wire.Name | None = None
    tool_calls: Annotated[list[CallParam], Field(max_length=MAX_CALLS)] | None = None
    tool_call_id: wire.Name | None = None

    def told(self) -> Message:
        """The same for chat templates."""
        functions = ((each.function, each.id) for each in self.tool_calls or ())
        calls = tuple(Call(each.name or "", each.arguments, identity) for each, identity in functions)
        return Message(_ROLES.get(self.role, self.role), self.content or "", self.name, calls, self.tool_call_id)


class FunctionDefinition(BaseModel):
    """Published FunctionDefinition."""

    name: FunctionName
    description: wire.Text | None = None
    parameters: dict[str, Any] | None = None
    strict: wire.Flag | None = None

    def told(self) -> Function:
        """The same in our own type."""
        return Function(self.name, self.description or "", self.parameters, strict=bool(self.strict))


class ToolParam(BaseModel):
    """Published ChatCompletionTool; for a tool that must be called, only the name counts."""

    type: Literal["function"]
    function: FunctionDefinition


class ChatRequestBody(wire.PublishedBody):
    """Published ChatCompletionRequest, plus the sampling fields of the other routes; null means "not sent"."""

    messages: Annotated[list[ChatMessageParam], Field(min_length=1, max_length=MAX_MESSAGES)]
    model: wire.ModelName
    max_tokens: Annotated[wire.Integer, Field(ge=1, le=MAX_CHAT_TOKENS)] | None = None
    max_completion_tokens: Annotated[wire.Integer, Field(ge=1, le=MAX_CHAT_TOKENS)] | None = None
    # Outside of 0.5 to 1 it is replaced, and the answer says so.
    temperature: Annotated[wire.Number, Field(ge=-1000, le=1000)] | None = None
    top_k: wire.TopK | None = None
    repetition_penalty: Annotated[wire.Number, Field(gt=0, le=1000)] | None = None
    n: Annotated[wire.Integer, Field(ge=1, le=1)] | None = None
    tools: Annotated[list[ToolParam], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: Literal["auto", "required", "none"] | ToolParam | None = None
    parallel_tool_calls: wire.Flag | None = None
    response_format: wire.ResponseFormat | None = None
    reasoning_effort: Literal["instant", "low", "medium", "high"] | None = None
    reasoning_summary: wire.Flag | None = None
    reasoning_summary_wait: wire.Flag | None = None
    realtime: wire.Flag | None = None
    diffusing: wire.Flag | None = None

    @field_validator("reasoning_effort", mode="before")
    @classmethod
    def _effort(cls, value: Any) -> Any:
        return _EFFORTS.get(value, value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _callable(self) -> Self:
        names = {tool.function.name for tool in self.tools or ()}
        if len(names) < len(self.tools or ()):
            raise ValueError("two tools have the same name")
        if self.tool_choice == "required" and not names:
            raise ValueError("tool_choice asks for a call, but the request has no tools")
        if isinstance(self.tool_choice, ToolParam) and self.tool_choice.function.name not in names:
            raise ValueError("tool_choice names an unknown function")
        return self


class ChatCall(BaseModel):
    """Published ToolCall, in an answer."""

    index: int
    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(BaseModel):
    """Published Message, in an answer: `tool_calls` is always there because a client refuses null and absence alike."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    tool_calls: list[ChatCall] = []


class ChatChoice(BaseModel):
    """Published Choice."""

    index: int = 0
    message: ChatMessage
    finish_reason: ChatFinishReason


class ReasoningSummary(BaseModel):
    """Published ReasoningSummary: what the model wrote before its answer; `unavailable` for models that do not."""

    content: str | None = None
    status: Literal["complete", "unavailable", "skipped"] = "unavailable"


class ChatCompletion(wire.Completion[ChatChoice]):
    """Published ChatCompletionResponse."""

    object: Literal["chat.completion"] = "chat.completion"
    reasoning_summary: ReasoningSummary | None = None


class ChatDelta(BaseModel):
    """Published ChunkDelta: `content` is added to what came before; with `diffusing` it replaces that."""

    role: Literal["assistant"] | None = wire.unset()
    content: str | None = wire.unset()
    tool_calls: list[ChatCall] | None = wire.unset()


class ChatChunkChoice(BaseModel):
    """Published ChunkChoice."""

    index: int = 0
    delta: ChatDelta
    finish_reason: ChatFinishReason | None = None


class ChatChunk(wire.Chunk[ChatChunkChoice]):
    """Published ChatCompletionChunk; `usage` is in the last one, which has no choices, if it was requested."""

    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    warning: str | None = wire.unset()
    reasoning_summary: ReasoningSummary | None = wire.unset()


_log = logging.getLogger("calomel.server")

# Published defaults, and the published range of the temperature.
DEFAULT_MAX_TOKENS: Final = 16_384
DEFAULT_TEMPERATURE: Final = 0.75
_COLDEST: Final = 0.5
_WARMEST: Final = 1.0
RESET: Final = f"temperature is outside of {_COLDEST} to {_WARMEST:g} and was reset to {DEFAULT_TEMPERATURE}"


class NoChatError(RefusedError):
    """The loaded model has no chat template."""

    status = 404
    code = "model_not_found"
    message = (
        "The loaded model does not chat: it has no chat template. Load one that does with `calomel serve --model PATH`."
    )


router = protected_router()


@router.post("/v1/chat/completions", response_model=ChatCompletion)
async def create_chat_completion(body: ChatRequestBody, request: Request) -> Response:
    """Answer a conversation; with `stream` as server-sent events, with `diffusing` too as whole canvas states."""
    template = _template(app_state_of(request).settings.model)
    if template is None:
        raise NoChatError(param="model")
    async with request_context(request, "chat") as context:
        if not isinstance(context.filler, Filler):
            raise NoChatError(param="model")
        chat = Chat(context.filler, template, lambda: f"call_{uuid.uuid4().hex[:24]}")
        wanted = await asyncio.to_thread(chat_request, body)
        try:
            answer_format = _wording(context, body)
            if body.stream:
                items: AsyncGenerator[str | Reply] | AsyncGenerator[CanvasText | Reply]
                items = chat.canvases(wanted) if body.diffusing else chat.stream(wanted)
                return context.stream(answer_format, await context.begun(items))
            return context.whole(answer_format.whole(await while_there(context.request, chat.reply(wanted))))
        except GrammarError as error:
            param = "tools" if wanted.schema is None and wanted.pattern is None else "response_format"
            raise InvalidParameterError(f"{param}: {error}", param) from None
        except ChatTemplateError as error:
            raise InvalidParameterError(f"messages: {error}", "messages") from None


def chat_request(body: ChatRequestBody) -> ChatRequest:
    """The client's request in our own type, with the published defaults."""
    named = body.tool_choice.function.name if isinstance(body.tool_choice, ToolParam) else None
    form = body.response_format
    return ChatRequest(
        messages=tuple(each.told() for each in body.messages),
        functions=tuple(tool.function.told() for tool in body.tools or ()),
        calling=body.tool_choice if isinstance(body.tool_choice, str) else "auto",
        named=named,
        parallel=body.parallel_tool_calls is not False,
        schema=None if form is None else form.schema_of(),
        pattern=None if form is None else form.pattern_of(),
        max_tokens=body.max_completion_tokens or body.max_tokens or DEFAULT_MAX_TOKENS,
        stop=tuple(body.stop or ()),
        sampling=body.model_copy(update={"temperature": _temperature(body)[0]}).sampling(),
        effort=body.reasoning_effort or "medium",
    )


@lru_cache(maxsize=4)
def _template(folder: Path | None) -> ChatTemplate | None:
    try:
        return ChatTemplate.of(folder or nano_path())
    except ChatTemplateError as error:
        _log.error("cannot use the model's chat template: %s", error)
        raise ModelFailedError from error


def _temperature(body: ChatRequestBody) -> tuple[float, str | None]:
    """The temperature that is used, and a warning when it is not the one that was sent."""
    if body.temperature is None or _COLDEST <= body.temperature <= _WARMEST:
        return DEFAULT_TEMPERATURE if body.temperature is None else body.temperature, None
    return DEFAULT_TEMPERATURE, RESET


def _wording(context: RequestContext, body: ChatRequestBody) -> AnswerFormat[Reply]:
    # The published ids of this route have another prefix.
    head = {**context.head(body.model), "id": context.id.replace("cmpl-", "chatcmpl-", 1)}
    warning = _temperature(body)[1]

    def chunk(delta: ChatDelta, reason: ChatFinishReason | None = None, **more: Any) -> ChatChunk:
        return ChatChunk(**head, choices=[ChatChunkChoice(delta=delta, finish_reason=reason)], **more)

    def whole(reply: Reply) -> ChatCompletion:
        context.answered(Spent.of(reply))
        message = ChatMessage(content=reply.content or (None if reply.calls else ""), tool_calls=_calls(reply))
        choices = [ChatChoice(message=message, finish_reason=_finish(reply))]
        return ChatCompletion(
            **head, choices=choices, usage=_usage(reply), warning=warning, reasoning_summary=_summary(body, reply)
        )

    def last(reply: Reply) -> Iterator[ChatChunk]:
        context.answered(Spent.of(reply))
        # A canvas replaces the one before, so the last has to be the whole answer.
        delta = ChatDelta(content=reply.content if body.diffusing else None)
        if reply.calls:
            yield chunk(delta.model_copy(update={"tool_calls": _calls(reply)}))
            delta = ChatDelta()
        yield chunk(delta, _finish(reply), warning=warning, reasoning_summary=_summary(body, reply))
        if body.wants_usage:
            yield ChatChunk(**head, choices=[], usage=_usage(reply))

    return AnswerFormat(
        whole,
        lambda text, canvas: chunk(ChatDelta(content=text), calomel=canvas),
        last,
        first=[chunk(ChatDelta(role="assistant", content=""))],
        done=DONE,
    )


def _calls(reply: Reply) -> list[ChatCall]:
    return [
        ChatCall(index=index, id=call.id, function=CalledFunction(name=call.name, arguments=call.arguments))
        for index, call in enumerate(reply.calls)
    ]


def _finish(reply: Reply) -> ChatFinishReason:
    """Published reasons only: an answer cut short by time is as incomplete as one cut short by length."""
    return "length" if reply.finish_reason == "deadline" else reply.finish_reason


def _summary(body: ChatRequestBody, reply: Reply) -> ReasoningSummary | None:
    if not body.reasoning_summary:
        return None
    return ReasoningSummary(content=reply.thought, status="complete") if reply.thought else ReasoningSummary()


def _usage(reply: Reply) -> wire.Usage:
    return wire.Usage.count(reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens, reply.thought_tokens)
