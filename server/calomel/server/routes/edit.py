"""POST /v1/edit/completions and /v1/apply/completions: a rewritten region, and a snippet merged into its file.

Edit is in the OpenAPI document of 2026-07; apply is only in the published pages beside it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Annotated, Final, Literal

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from calomel.prompts.edit_prompt import ForeignPromptError
from calomel.prompts.mercury import mercury_answer, parse_mercury
from calomel.server import wire
from calomel.server.answers import Ended, decided, known, published, rewritten
from calomel.server.app_state import RequestContext, request_context, while_there
from calomel.server.errors import InvalidParameterError
from calomel.server.metrics import Spent
from calomel.server.middleware import protected_router
from calomel.suggest.apply import ApplyPrompt, ApplyPromptError, merge, parse_apply

_MERGES: Final = ThreadPoolExecutor(2, thread_name_prefix="calomel-merge")


class UserMessage(BaseModel):
    """Published EditMessageParam."""

    role: Literal["user"]
    content: wire.Content


class EditRequest(wire.StreamedBody):
    """Published EditCompletionRequest, plus what clients also send; null means "not sent".

    There is exactly one message, from the user. The filter decides what is answered, not a temperature: the sampling
    fields are checked but have no effect.
    """

    messages: Annotated[list[UserMessage], Field(min_length=1, max_length=1)]
    model: wire.ModelName
    max_tokens: wire.AnswerTokens | None = None
    temperature: Annotated[wire.Number, Field(ge=0, le=2)] | None = None
    top_p: Annotated[wire.Number, Field(ge=0, le=1)] | None = None
    frequency_penalty: wire.Penalty | None = None
    presence_penalty: wire.Penalty | None = None
    stop: wire.Stops | None = None


class ApplyRequest(EditRequest):
    """One message with the file and the snippet; whatever is not sent is not needed.

    `max_tokens` has no effect: half a file would overwrite the whole one.
    """

    diffusing: wire.Flag | None = None


class AssistantMessage(BaseModel):
    """Published EditMessage; `tool_calls` is always present because a client refuses null and absence alike."""

    role: Literal["assistant"] = "assistant"
    content: str
    tool_calls: list[None] = []


class EditChoice(BaseModel):
    """Published EditChoice."""

    index: int = 0
    message: AssistantMessage
    finish_reason: wire.OpenAIFinishReason


class EditCompletion(wire.Completion[EditChoice]):
    """Published EditCompletionResponse."""

    object: Literal["edit.completion"] = "edit.completion"


class ApplyCompletion(wire.Completion[EditChoice]):
    """An answer in the shape of the chat route; its content is only the merged file."""

    object: Literal["chat.completion"] = "chat.completion"


class Delta(BaseModel):
    """What a chunk adds to the answer."""

    role: Literal["assistant"] | None = None
    content: str


class EditChunkChoice(BaseModel):
    """One delta."""

    index: int = 0
    delta: Delta
    finish_reason: wire.OpenAIFinishReason | None = None


class EditChunk(wire.Chunk[EditChunkChoice]):
    """A chunk of a streamed answer, as clients of the chat route know it."""

    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"


class ApplyLastChunk(EditChunk):
    """The end of a streamed answer, with the warning of a whole one."""

    warning: str | None = None


router = protected_router()


@router.post("/v1/edit/completions", response_model=EditCompletion)
@router.post("/api/edit/completions", response_model=EditCompletion)  # a gateway's
async def create_edit_completion(body: EditRequest, request: Request) -> Response:
    """Rewrite the region between the tags; unchanged if no edit is probable enough. With `stream`, as events."""
    try:
        prompt = await asyncio.to_thread(parse_mercury, body.messages[0].content)
    except ForeignPromptError as error:
        raise InvalidParameterError(str(error), "messages") from None
    async with request_context(request, "edit") as context:
        answer = await rewritten(context, prompt)
        ending = Ended(mercury_answer(answer.text), decided(context, answer, prompt.path))
        answer_format = published(
            context.head(body.model), EditCompletion, _choice, EditChunk, _delta, usage=body.wants_usage
        )
        return known(context, answer_format, ending, [ending.text], stream=body.stream)


@router.post("/v1/apply/completions", response_model=ApplyCompletion)
async def create_apply_completion(body: ApplyRequest, request: Request) -> Response:
    """Merge the snippet; if its place is not certain, answer with the unchanged file and a warning that says so."""
    try:
        prompt = await asyncio.to_thread(parse_apply, body.messages[0].content)
    except ApplyPromptError as error:
        raise InvalidParameterError(f"messages: {error}", "messages") from None
    async with request_context(request, "apply") as context:
        ending = await while_there(context.request, _merged(context, prompt))
        answer_format = published(
            context.head(body.model), ApplyCompletion, _choice, EditChunk, _delta, usage=body.wants_usage
        )

        def last(_: Ended) -> Iterable[BaseModel]:
            end, *usage = answer_format.last(ending)
            return ApplyLastChunk(**end.model_dump(), warning=ending.warning), *usage

        return known(context, replace(answer_format, last=last), ending, [ending.text], stream=body.stream)


async def _merged(context: RequestContext, prompt: ApplyPrompt) -> Ended:
    """The merged file; no model is asked."""
    began, gone = time.monotonic(), threading.Event()
    # In a thread, so that the server can answer others meanwhile; only a few at a time, which leaves the processor to
    # the engine. A merge ends when its client leaves.
    try:
        merged = await context.prepare(_MERGES, merge, prompt.original, prompt.update, gone.is_set)
    finally:
        gone.set()
    context.answered(Spent(seconds=time.monotonic() - began))
    return Ended(merged.text, wire.Usage.count(0, 0, 0), warning=merged.warning)


def _choice(content: str, reason: wire.OpenAIFinishReason) -> EditChoice:
    return EditChoice(message=AssistantMessage(content=content), finish_reason=reason)


def _delta(content: str, reason: wire.OpenAIFinishReason | None) -> EditChunkChoice:
    """The first delta has the role, and the whole answer."""
    delta = Delta(role=None if reason else "assistant", content=content)
    return EditChunkChoice(delta=delta, finish_reason=reason)
