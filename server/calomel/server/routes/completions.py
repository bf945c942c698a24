"""POST /v1/completions: a hole in whatever format the client writes it, or one of Zed's regions to rewrite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from fastapi import Depends, Request
from starlette.responses import JSONResponse, Response

from calomel.prompts.edit_prompt import ForeignPromptError
from calomel.prompts.fim_tokens import parse_fim
from calomel.prompts.zeta import is_zeta, parse_zeta
from calomel.server.access import protected_router
from calomel.server.door import Visit, visit
from calomel.server.errors import InvalidParameterError
from calomel.server.fills import fill_of
from calomel.server.media import require_json
from calomel.server.rewrites import rewritten
from calomel.server.routes.fim import DEFAULT_MAX_TOKENS, TRIMMED, answered, finish_reason, usage
from calomel.server.sampling import sampling_of
from calomel.server.schemas.base import MAX_TOKENS, FinishReason, Usage
from calomel.server.schemas.completions import (
    Completion,
    CompletionChoice,
    CompletionChunk,
    CompletionRequest,
    CompletionUsageChunk,
)
from calomel.server.schemas.errors import ErrorResponse
from calomel.server.sessions import client_of
from calomel.server.sse import DONE, event

if TYPE_CHECKING:
    from calomel.suggest.fill import Fill, FillRequest

router = protected_router(dependencies=[Depends(require_json)])

_NAME: Final = "completions"


@router.post(
    "/v1/completions",
    response_model=Completion,
    responses={"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}},
)
async def create_completion(body: CompletionRequest, request: Request) -> Response:
    """Fill the hole, or rewrite the region; with `stream`, as server-sent events."""
    if is_zeta(body.prompt) and not body.suffix:
        return await _edit(body, request)
    async with visit(request, _NAME) as visiting:
        wanted = await _fill_request(visiting, body)
        if body.stream:
            return visiting.stream(_fill_events(visiting, body, await visiting.begun(visiting.filler.stream(wanted))))
        fill = await visiting.fill(wanted)
        answered(visiting, fill)
        return _plain(visiting, body, fill.text, finish_reason(fill), usage(fill), TRIMMED if fill.trimmed else None)


async def _fill_request(visiting: Visit, body: CompletionRequest) -> FillRequest:
    return await fill_of(
        visiting,
        parse_fim(body.prompt, body.suffix),
        max_tokens=min(body.max_tokens or DEFAULT_MAX_TOKENS, MAX_TOKENS),
        min_tokens=body.min_tokens or 0,
        stop=tuple(body.stop or ()),
        # Some servers take a `top_k` of 0 for all.
        sampling=sampling_of(body.model_copy(update={"top_k": body.top_k or None})),
    )


async def _edit(body: CompletionRequest, request: Request) -> Response:
    try:
        zeta = parse_zeta(body.prompt)
    except ForeignPromptError as error:
        raise InvalidParameterError(str(error), "prompt") from None
    async with visit(request, "zeta") as visiting:
        text, used = await rewritten(visiting, zeta, body.stop or (), client_of(request))
        if body.stream:
            return visiting.stream(_edit_events(visiting, body, text, used))
        return _plain(visiting, body, text, "stop", used)


def _head(visiting: Visit, body: CompletionRequest) -> dict[str, Any]:
    return {"id": visiting.id, "created": visiting.created, "model": body.model or visiting.door.model.id}


def _plain(
    visiting: Visit, body: CompletionRequest, text: str, reason: FinishReason, used: Usage, warning: str | None = None
) -> Response:
    choices = [CompletionChoice(text=text, finish_reason=reason)]
    answer = Completion(**_head(visiting, body), choices=choices, usage=used, warning=warning)
    return JSONResponse(answer.model_dump())


async def _fill_events(
    visiting: Visit, body: CompletionRequest, items: AsyncIterator[str | Fill]
) -> AsyncIterator[bytes]:
    async for item in items:
        if not isinstance(item, str):
            answered(visiting, item)
            for each in _ending(visiting, body, finish_reason(item), usage(item)):
                yield each
        elif item:
            yield _chunk(visiting, body, item)


async def _edit_events(visiting: Visit, body: CompletionRequest, text: str, used: Usage) -> AsyncIterator[bytes]:
    """The answer is known as a whole: it is one delta."""
    if text:
        yield _chunk(visiting, body, text)
    for each in _ending(visiting, body, "stop", used):
        yield each


def _ending(visiting: Visit, body: CompletionRequest, reason: FinishReason, used: Usage) -> list[bytes]:
    """The last events of a stream."""
    events = [_chunk(visiting, body, "", reason)]
    if body.stream_options is not None and body.stream_options.include_usage:
        events.append(event(CompletionUsageChunk(**_head(visiting, body), usage=used)))
    return [*events, DONE]


def _chunk(visiting: Visit, body: CompletionRequest, text: str, reason: FinishReason | None = None) -> bytes:
    choices = [CompletionChoice(text=text, finish_reason=reason)]
    return event(CompletionChunk(**_head(visiting, body), choices=choices))
