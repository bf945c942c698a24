"""POST /v1/fim/completions: the text that belongs between `prompt` and `suffix`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING

from fastapi import Depends, Request
from starlette.responses import JSONResponse, Response

from calomel.server.access import protected_router
from calomel.server.door import Visit, visit
from calomel.server.media import require_json
from calomel.server.metrics import Spent
from calomel.server.schemas.base import FinishReason, Usage
from calomel.server.schemas.errors import ErrorResponse
from calomel.server.schemas.fim import (
    DEFAULT_STOP,
    FimChoice,
    FimChunk,
    FimChunkChoice,
    FimCompletion,
    FimRequest,
    FimUsageChunk,
)
from calomel.server.sse import DONE, event

if TYPE_CHECKING:
    from calomel.suggest.fill import Fill, FillRequest

# Published default.
DEFAULT_MAX_TOKENS = 512
# A penalty divides or multiplies logits; beyond these bounds float32 overflows, and within them it has long saturated.
_PENALTY_BOUNDS = (0.01, 100.0)


router = protected_router(dependencies=[Depends(require_json)])


@router.post(
    "/v1/fim/completions",
    response_model=FimCompletion,
    responses={"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}},
)
async def create_fim_completion(body: FimRequest, request: Request) -> Response:
    """Fill the hole; with `stream`, as server-sent events."""
    async with visit(request, "fim") as visiting:
        wanted = fill_request(body)
        if body.stream:
            return await _stream(visiting, body, wanted)
        return _plain(visiting, body.model, await visiting.run(visiting.filler.afill(wanted)))


def fill_request(body: FimRequest) -> FillRequest:
    """The client's words in ours, with the published defaults (but see FimRequest on penalties)."""
    # The engine imports torch, which has been loaded with the model by now.
    from calomel.engine import SamplingParams
    from calomel.suggest.fill import FillRequest

    low, high = _PENALTY_BOUNDS
    # The published range of top_p has a 0; the smallest set of tokens is the most probable one.
    greedy = body.top_p == 0
    sampling = SamplingParams(
        temperature=0.0 if greedy else body.temperature or 0.0,
        top_p=1.0 if greedy or body.top_p is None else body.top_p,
        top_k=-1 if body.top_k is None else body.top_k,
        frequency_penalty=body.frequency_penalty or 0.0,
        presence_penalty=body.presence_penalty or 0.0,
        repetition_penalty=1.0 if body.repetition_penalty is None else min(high, max(low, body.repetition_penalty)),
        seed=body.seed,
    )
    return FillRequest(
        prefix=body.prompt,
        suffix=body.suffix or "",
        max_tokens=DEFAULT_MAX_TOKENS if body.max_tokens is None else body.max_tokens,
        min_tokens=body.min_tokens or 0,
        stop=DEFAULT_STOP if body.stop is None else tuple(body.stop),
        sampling=sampling,
    )


def finish_reason(fill: Fill) -> FinishReason:
    """Published reasons only: an answer that time cut short is as incomplete as one that length cut short."""
    return "stop" if fill.finish_reason == "stop" else "length"


def usage(fill: Fill) -> Usage:
    """Token counts of one fill."""
    return Usage.count(fill.prompt_tokens, fill.completion_tokens, fill.cached_tokens)


def spent(fill: Fill) -> Spent:
    """What one fill took."""
    return Spent(
        fill.prompt_tokens, fill.cached_tokens, fill.completion_tokens, fill.steps, fill.seconds, fill.finish_reason
    )


def _plain(visiting: Visit, model: str, fill: Fill) -> Response:
    visiting.answered(spent(fill))
    choice = FimChoice(text=fill.text, finish_reason=finish_reason(fill))
    answer = FimCompletion(id=visiting.id, created=visiting.created, model=model, choices=[choice], usage=usage(fill))
    return JSONResponse(answer.model_dump())


async def _stream(visiting: Visit, body: FimRequest, wanted: FillRequest) -> Response:
    """Wait for the first item, so that a refused request still gets its status, then stream."""
    items = visiting.filler.stream(wanted)
    if isinstance(items, AsyncGenerator):
        visiting.on_leaving(items.aclose)

    async def next_item() -> str | Fill:
        return await anext(items)

    first = await visiting.run(next_item())
    return visiting.stream(_events(visiting, body, first, items))


async def _events(
    visiting: Visit, body: FimRequest, first: str | Fill, items: AsyncIterator[str | Fill]
) -> AsyncIterator[bytes]:
    def chunk(text: str, reason: FinishReason | None = None) -> bytes:
        choice = FimChunkChoice(text=text, finish_reason=reason)
        return event(FimChunk(id=visiting.id, created=visiting.created, model=body.model, choices=[choice]))

    item = first
    while isinstance(item, str):
        if item:
            yield chunk(item)
        item = await anext(items)
    visiting.answered(spent(item))
    yield chunk("", finish_reason(item))
    if body.stream_options is not None and body.stream_options.include_usage:
        yield event(FimUsageChunk(id=visiting.id, created=visiting.created, model=body.model, usage=usage(item)))
    yield DONE
