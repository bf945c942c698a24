"""POST /v1/fim/completions: the text that belongs between `prompt` and `suffix`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fastapi import Depends, Request
from starlette.responses import JSONResponse, Response

from calomel.server.access import protected_router
from calomel.server.constraining import constraint_of
from calomel.server.deliveries import Delivered
from calomel.server.door import Visit, visit
from calomel.server.fills import nearest
from calomel.server.media import require_json
from calomel.server.metrics import Spent
from calomel.server.sampling import sampling_of
from calomel.server.schemas.base import FinishReason, Usage
from calomel.server.schemas.errors import ErrorResponse
from calomel.server.schemas.fim import (
    DEFAULT_STOP,
    Canvas,
    FimCanvasChunk,
    FimChoice,
    FimChunk,
    FimChunkChoice,
    FimCompletion,
    FimMessage,
    FimRequest,
    FimUsageChunk,
)
from calomel.server.sse import DONE, event
from calomel.suggest.asker import context_tokens
from calomel.suggest.canvas_text import CanvasText

if TYPE_CHECKING:
    from calomel.suggest.fill import Fill, FillRequest

# Published default.
DEFAULT_MAX_TOKENS: Final = 512
TRIMMED: Final = "The beginning of the prompt was left out: it is longer than the model reads."


router = protected_router(dependencies=[Depends(require_json)])


@router.post(
    "/v1/fim/completions",
    response_model=FimCompletion,
    responses={"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}},
)
async def create_fim_completion(body: FimRequest, request: Request) -> Response:
    """Fill the hole; with `stream`, as server-sent events."""
    async with visit(request, "fim") as visiting:
        constraint = await constraint_of(visiting.filler, body.response_format)
        # Looking for secrets in megabytes takes seconds, which others do not wait for.
        wanted = replace(await visiting.prepare(None, fill_request, visiting, body), constraint=constraint)
        if body.stream:
            return await _stream(visiting, body, wanted)
        return _plain(visiting, body.model, await visiting.fill(wanted))


def fill_request(visiting: Visit, body: FimRequest) -> FillRequest:
    """The client's words in ours, with the published defaults (but see FimRequest on penalties); secrets masked."""
    from calomel.suggest.fill import FillRequest  # the engine imports torch, which came with the model

    max_tokens = DEFAULT_MAX_TOKENS if body.max_tokens is None else body.max_tokens
    most = context_tokens(visiting.info, visiting.door.settings.context_tokens, max_tokens)
    prefix, suffix = nearest(body.prompt, body.suffix or "", most)
    return FillRequest(
        prefix=visiting.door.mask(prefix),
        suffix=visiting.door.mask(suffix),
        max_tokens=max_tokens,
        min_tokens=body.min_tokens or 0,
        stop=default_stop(body) if body.stop is None else tuple(body.stop),
        sampling=sampling_of(body),
        max_steps=body.max_steps,
        max_context=most,
        fitted=True,
    )


def default_stop(body: FimRequest) -> tuple[str, ...]:
    """The published one; but JSON that is asked for may have a blank line in it."""
    return DEFAULT_STOP if body.response_format is None or body.response_format.type == "text" else ()


def finish_reason(fill: Fill) -> FinishReason:
    """Published reasons only: an answer that time cut short is as incomplete as one that length cut short."""
    return "stop" if fill.finish_reason == "stop" else "length"


def usage(fill: Fill) -> Usage:
    """Token counts of one fill."""
    return Usage.count(fill.prompt_tokens, fill.completion_tokens, fill.cached_tokens)


def answered(visiting: Visit, fill: Fill) -> None:
    """Count a fill, and remember it for feedback."""
    visiting.answered(
        Spent(
            fill.prompt_tokens, fill.cached_tokens, fill.completion_tokens, fill.steps, fill.seconds, fill.finish_reason
        )
    )
    delivered = Delivered("fill", visiting.info.id, fill.confidence, fill.text)
    visiting.door.deliveries.remember(visiting.id, delivered)


def _plain(visiting: Visit, model: str, fill: Fill) -> Response:
    answered(visiting, fill)
    answer = FimCompletion(
        id=visiting.id,
        created=visiting.created,
        model=model,
        choices=[FimChoice(text=fill.text, message=FimMessage(content=fill.text), finish_reason=finish_reason(fill))],
        usage=usage(fill),
        warning=TRIMMED if fill.trimmed else None,
    )
    return JSONResponse(answer.model_dump())


async def _stream(visiting: Visit, body: FimRequest, wanted: FillRequest) -> Response:
    items: AsyncGenerator[str | Fill] | AsyncGenerator[CanvasText | Fill]
    items = visiting.filler.canvases(wanted) if body.diffusing else visiting.filler.stream(wanted)
    return visiting.stream(_events(visiting, body, await visiting.begun(items)))


async def _events(
    visiting: Visit, body: FimRequest, items: AsyncIterator[str | CanvasText | Fill]
) -> AsyncIterator[bytes]:
    head = {"id": visiting.id, "created": visiting.created, "model": body.model}

    def chunk(text: str, reason: FinishReason | None = None) -> bytes:
        return event(FimChunk.model_validate({**head, "choices": [FimChunkChoice(text=text, finish_reason=reason)]}))

    item = await anext(items)
    while isinstance(item, str | CanvasText):
        if isinstance(item, CanvasText):
            visiting.saw(item)
            canvas = Canvas(step=item.step, pieces=list(item.pieces), revealed=list(item.revealed))
            choices = [FimChunkChoice(text=item.text)]
            yield event(FimCanvasChunk.model_validate({**head, "choices": choices, "calomel": canvas}))
        elif item:
            yield chunk(item)
        item = await anext(items)
    answered(visiting, item)
    # A canvas takes the place of the last one, so the last chunk has all of the answer; a delta has nothing to add.
    yield chunk(item.text if body.diffusing else "", finish_reason(item))
    if body.stream_options is not None and body.stream_options.include_usage:
        yield event(FimUsageChunk.model_validate({**head, "choices": [], "usage": usage(item)}))
    yield DONE
