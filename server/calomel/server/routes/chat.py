"""POST /v1/chat/completions: the next message of a conversation, of checkpoints that have a chat template."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi import Depends, Request
from starlette.responses import JSONResponse, Response

from calomel.prompts.chat import Call, Function, Message
from calomel.prompts.chat_template import ChatTemplate, ChatTemplateError
from calomel.prompts.grammar import GrammarError
from calomel.server.access import protected_router
from calomel.server.door import Visit, door_of, visit
from calomel.server.errors import DoorError, InvalidParameterError, ModelFailedError
from calomel.server.media import require_json
from calomel.server.metrics import Spent
from calomel.server.sampling import sampling_of
from calomel.server.schemas.base import CompletionTokensDetails, Usage
from calomel.server.schemas.chat import (
    ChatCall,
    ChatChoice,
    ChatChunk,
    ChatChunkChoice,
    ChatCompletion,
    ChatDelta,
    ChatFinishReason,
    ChatFunction,
    ChatMessage,
    ChatRequestBody,
    NamedTool,
    ReasoningSummary,
)
from calomel.server.schemas.errors import ErrorResponse
from calomel.server.schemas.fim import Canvas
from calomel.server.sse import DONE, event
from calomel.suggest.canvas_text import CanvasText
from calomel.suggest.chat_request import ChatRequest
from calomel.weights import nano_path

if TYPE_CHECKING:
    from calomel.suggest.chat import Chat, Reply

_log = logging.getLogger("calomel.server")

# Published defaults, and the published range of the temperature.
DEFAULT_MAX_TOKENS: Final = 16_384
DEFAULT_TEMPERATURE: Final = 0.75
_COLDEST: Final = 0.5
_WARMEST: Final = 1.0
RESET: Final = f"temperature is outside of {_COLDEST} to {_WARMEST:g} and was reset to {DEFAULT_TEMPERATURE}"


class NoChatError(DoorError):
    """The loaded model has no chat template."""

    status = 404
    type = "invalid_request_error"
    code = "model_not_found"
    message = (
        "The loaded model does not chat: its folder has no chat template. "
        "`calomel serve --model PATH` loads one that does."
    )


router = protected_router(dependencies=[Depends(require_json)])


@router.post(
    "/v1/chat/completions",
    response_model=ChatCompletion,
    responses={"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}},
)
async def create_chat_completion(body: ChatRequestBody, request: Request) -> Response:
    """Answer a conversation; with `stream` as server-sent events, with `diffusing` too as whole canvas states."""
    template = _template(door_of(request).settings.model)
    if template is None:
        raise NoChatError(param="model")
    async with visit(request, "chat") as visiting:
        from calomel.suggest.chat import Chat  # the engine imports torch, which came with the model

        chat = Chat(visiting.filler, template, lambda: f"call_{uuid.uuid4().hex[:24]}")
        wanted = await asyncio.to_thread(chat_request, visiting, body)
        try:
            if body.stream:
                return await _stream(visiting, body, chat, wanted)
            return _plain(visiting, body, await visiting.run(_reply(visiting, chat, wanted)))
        except GrammarError as error:
            param = "tools" if wanted.schema is None and wanted.pattern is None else "response_format"
            raise InvalidParameterError(f"{param}: {error}", param) from None
        except ChatTemplateError as error:
            raise InvalidParameterError(f"messages: {error}", "messages") from None


def chat_request(visiting: Visit, body: ChatRequestBody) -> ChatRequest:
    """The client's words in ours, with the published defaults; secrets in messages are masked."""
    named = body.tool_choice.function.name if isinstance(body.tool_choice, NamedTool) else None
    form, mask = body.response_format, visiting.door.mask
    return ChatRequest(
        messages=tuple(
            Message(
                each.speaker,
                mask(each.content or ""),
                each.name,
                tuple(
                    Call(call.function.name or "", mask(call.function.arguments), call.id)
                    for call in each.tool_calls or ()
                ),
                each.tool_call_id,
            )
            for each in body.messages
        ),
        functions=tuple(
            Function(
                tool.function.name,
                tool.function.description or "",
                tool.function.parameters,
                strict=bool(tool.function.strict),
            )
            for tool in body.tools or ()
        ),
        calling="auto" if body.tool_choice is None or isinstance(body.tool_choice, NamedTool) else body.tool_choice,
        named=named,
        parallel=body.parallel_tool_calls is not False,
        schema=None if form is None else form.schema_of(),
        pattern=None if form is None else form.pattern_of(),
        max_tokens=body.max_completion_tokens or body.max_tokens or DEFAULT_MAX_TOKENS,
        stop=tuple(body.stop or ()),
        sampling=sampling_of(body.model_copy(update={"temperature": _temperature(body)[0]})),
        effort=body.reasoning_effort or "medium",
    )


@lru_cache(maxsize=4)
def _template(folder: Path | None) -> ChatTemplate | None:
    try:
        return ChatTemplate.of(folder or nano_path())
    except ChatTemplateError as error:
        _log.error("the model's chat template can not be used: %s", error)
        raise ModelFailedError from error


def _temperature(body: ChatRequestBody) -> tuple[float, str | None]:
    """The temperature that is used, and the warning when it is not the one that was sent."""
    if body.temperature is None or _COLDEST <= body.temperature <= _WARMEST:
        return DEFAULT_TEMPERATURE if body.temperature is None else body.temperature, None
    return DEFAULT_TEMPERATURE, RESET


async def _reply(visiting: Visit, chat: Chat, wanted: ChatRequest) -> Reply:
    """The reply; watched where the administrator asked for recordings."""
    if not visiting.door.settings.record_denoising:
        return await chat.reply(wanted)
    async with aclosing(chat.canvases(wanted)) as items:
        async for item in items:
            if not isinstance(item, CanvasText):
                return item
            visiting.saw(item)
    raise DoorError


def _plain(visiting: Visit, body: ChatRequestBody, reply: Reply) -> Response:
    _answered(visiting, reply)
    message = ChatMessage(content=reply.content or (None if reply.calls else ""), tool_calls=_calls(reply))
    answer = ChatCompletion(
        id=_id(visiting),
        created=visiting.created,
        model=body.model,
        choices=[ChatChoice(message=message, finish_reason=_finish(reply))],
        usage=_usage(reply),
        warning=_temperature(body)[1],
        reasoning_summary=_summary(reply) if body.reasoning_summary else None,
    )
    return JSONResponse(answer.model_dump())


async def _stream(visiting: Visit, body: ChatRequestBody, chat: Chat, wanted: ChatRequest) -> Response:
    items: AsyncGenerator[str | Reply] | AsyncGenerator[CanvasText | Reply]
    items = chat.canvases(wanted) if body.diffusing else chat.stream(wanted)
    return visiting.stream(_events(visiting, body, await visiting.begun(items)))


async def _events(
    visiting: Visit, body: ChatRequestBody, items: AsyncIterator[str | CanvasText | Reply]
) -> AsyncIterator[bytes]:
    def chunk(delta: ChatDelta | None = None, reason: ChatFinishReason | None = None, **more: Any) -> bytes:
        choices = [] if delta is None else [ChatChunkChoice(delta=delta, finish_reason=reason)]
        return event(ChatChunk(id=_id(visiting), created=visiting.created, model=body.model, choices=choices, **more))

    yield chunk(ChatDelta(role="assistant", content=""))
    item = await anext(items)
    while isinstance(item, str | CanvasText):
        if isinstance(item, CanvasText):
            visiting.saw(item)
            canvas = Canvas(step=item.step, pieces=list(item.pieces), revealed=list(item.revealed))
            yield chunk(ChatDelta(content=item.text), calomel=canvas)
        else:
            yield chunk(ChatDelta(content=item))
        item = await anext(items)
    _answered(visiting, item)
    # A canvas takes the place of the last one, so the last has to be all of the answer; a delta has nothing to add.
    last = ChatDelta(content=item.content if body.diffusing else None)
    if item.calls:
        yield chunk(last.model_copy(update={"tool_calls": _calls(item)}))
        last = ChatDelta()
    more: dict[str, Any] = {"warning": _temperature(body)[1]}
    if body.reasoning_summary:
        more["reasoning_summary"] = _summary(item)
    yield chunk(last, _finish(item), **more)
    if body.stream_options is not None and body.stream_options.include_usage:
        yield chunk(usage=_usage(item))
    yield DONE


def _id(visiting: Visit) -> str:
    """Published ids of this route begin differently."""
    return visiting.id.replace("cmpl-", "chatcmpl-", 1)


def _calls(reply: Reply) -> list[ChatCall]:
    return [
        ChatCall(index=index, id=call.id, function=ChatFunction(name=call.name, arguments=call.arguments))
        for index, call in enumerate(reply.calls)
    ]


def _finish(reply: Reply) -> ChatFinishReason:
    """Published reasons only: an answer that time cut short is as incomplete as one that length cut short."""
    return "length" if reply.finish_reason == "deadline" else reply.finish_reason


def _summary(reply: Reply) -> ReasoningSummary:
    return ReasoningSummary(content=reply.thought, status="complete") if reply.thought else ReasoningSummary()


def _usage(reply: Reply) -> Usage:
    counted = Usage.count(reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens)
    details = CompletionTokensDetails(reasoning_tokens=reply.thought_tokens)
    return counted.model_copy(update={"reasoning_tokens": reply.thought_tokens, "completion_tokens_details": details})


def _answered(visiting: Visit, reply: Reply) -> None:
    visiting.answered(
        Spent(
            reply.prompt_tokens,
            reply.cached_tokens,
            reply.completion_tokens,
            reply.steps,
            reply.seconds,
            "stop" if reply.finish_reason == "tool_calls" else reply.finish_reason,
        )
    )
