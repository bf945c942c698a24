"""POST /v1/fim/completions: the text that belongs between `prompt` and `suffix`."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from calomel.server.admission import Admission
from calomel.server.boundary import log_failure
from calomel.server.disconnect import until_disconnect
from calomel.server.errors import DoorError, MediaTypeError, from_engine
from calomel.server.loading import Filler, ModelLoader
from calomel.server.schemas import (
    DEFAULT_STOP,
    ErrorResponse,
    FimChoice,
    FimChunk,
    FimChunkChoice,
    FimCompletion,
    FimRequest,
    FimUsageChunk,
    FinishReason,
    Usage,
)
from calomel.server.sse import DONE, EventStream, event

if TYPE_CHECKING:
    from calomel.suggest.fill import Fill, FillRequest

_log = logging.getLogger("calomel.server")

# Published default.
DEFAULT_MAX_TOKENS = 512
# A penalty divides or multiplies logits; beyond these bounds float32 overflows, and within them it has long saturated.
_PENALTY_BOUNDS = (0.01, 100.0)


async def require_json(request: Request) -> None:
    """Raise MediaTypeError unless the body is declared as JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise MediaTypeError


router = APIRouter(dependencies=[Depends(require_json)])


@dataclass(frozen=True, slots=True)
class Head:
    """What every chunk of one completion repeats."""

    model: str
    id: str = field(default_factory=lambda: f"cmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def chunk(self, text: str, finish_reason: FinishReason | None = None) -> FimChunk:
        """A text delta; the last one carries the finish reason."""
        choice = FimChunkChoice(text=text, finish_reason=finish_reason)
        return FimChunk(id=self.id, created=self.created, model=self.model, choices=[choice])


@router.post(
    "/v1/fim/completions",
    response_model=FimCompletion,
    responses={"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}},
)
async def create_fim_completion(body: FimRequest, request: Request) -> Response:
    """Fill the hole; with `stream`, as server-sent events."""
    loader: ModelLoader = request.app.state.loader
    admission: Admission = request.app.state.admission
    filler = loader.filler()
    wanted = fill_request(body)
    async with AsyncExitStack() as stack:
        stack.enter_context(admission.place())
        try:
            if not body.stream:
                return completion(Head(body.model), await until_disconnect(request, filler.afill(wanted)))
            return await _open_stream(request, body, filler, wanted, stack)
        except Exception as error:
            refusal = from_engine(error)
            if refusal is None:
                raise
            raise refusal from error


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
        stop=DEFAULT_STOP if body.stop is None else tuple(body.stop),
        sampling=sampling,
    )


def completion(head: Head, fill: Fill) -> Response:
    """The plain answer."""
    _log_fill(head, fill)
    choice = FimChoice(text=fill.text, finish_reason=finish_reason(fill))
    answer = FimCompletion(id=head.id, created=head.created, model=head.model, choices=[choice], usage=usage(fill))
    return JSONResponse(answer.model_dump())


def finish_reason(fill: Fill) -> FinishReason:
    """Published reasons only: an answer that time cut short is as incomplete as one that length cut short."""
    return "stop" if fill.finish_reason == "stop" else "length"


def usage(fill: Fill) -> Usage:
    """Token counts of one fill."""
    return Usage.count(fill.prompt_tokens, fill.completion_tokens, fill.cached_tokens)


async def _open_stream(
    request: Request, body: FimRequest, filler: Filler, wanted: FillRequest, stack: AsyncExitStack
) -> Response:
    """Wait for the first item, so that a refused request still gets its status, then stream.

    The response takes over what `stack` holds: the place in the queue, and the engine's work.
    """
    items = filler.stream(wanted)
    if isinstance(items, AsyncGenerator):
        stack.push_async_callback(items.aclose)

    async def next_item() -> str | Fill:
        return await anext(items)

    first = await until_disconnect(request, next_item())
    with_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
    return EventStream(_events(Head(body.model), first, items, with_usage=with_usage), stack.pop_all().aclose)


async def _events(
    head: Head, first: str | Fill, items: AsyncIterator[str | Fill], *, with_usage: bool
) -> AsyncIterator[bytes]:
    item = first
    try:
        while isinstance(item, str):
            if item:
                yield event(head.chunk(item))
            item = await anext(items)
    except Exception as error:  # noqa: BLE001 (the status has been sent; the error can only be one more event)
        refusal = from_engine(error)
        if refusal is None:
            log_failure(error)
        yield event(ErrorResponse.model_validate((refusal or DoorError()).body()))
        return
    _log_fill(head, item)
    yield event(head.chunk("", finish_reason(item)))
    if with_usage:
        yield event(FimUsageChunk(id=head.id, created=head.created, model=head.model, usage=usage(item)))
    yield DONE


def _log_fill(head: Head, fill: Fill) -> None:
    _log.info(
        "fim %s: %d prompt tokens (%d cached), %d tokens in %d steps, %.0f ms, %s",
        head.id,
        fill.prompt_tokens,
        fill.cached_tokens,
        fill.completion_tokens,
        fill.steps,
        fill.seconds * 1000,
        fill.finish_reason,
    )
