"""POST /api/generate, GET /api/tags and /api/version, for clients that speak to Ollama."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from fastapi import Depends, Request
from starlette.responses import JSONResponse, Response

from calomel.prompts.edit_prompt import ForeignPromptError
from calomel.prompts.fim_tokens import parse_fim
from calomel.prompts.zeta import is_zeta, parse_zeta
from calomel.server.access import protected_router
from calomel.server.boundary import log_failure
from calomel.server.door import Visit, door_of, visit
from calomel.server.errors import DoorError, InvalidParameterError
from calomel.server.fills import fill_of
from calomel.server.media import require_json
from calomel.server.rewrites import rewritten
from calomel.server.routes.fim import answered, finish_reason
from calomel.server.sampling import llama_sampling_of
from calomel.server.schemas.base import MAX_TOKENS
from calomel.server.schemas.errors import ErrorResponse
from calomel.server.schemas.ollama import (
    GenerateChunk,
    GenerateRequest,
    GenerateResponse,
    OllamaVersion,
    Options,
    Tag,
    Tags,
)
from calomel.server.sessions import client_of
from calomel.suggest.model_info import version

if TYPE_CHECKING:
    from calomel.suggest.fill import Fill, FillRequest

# Ollama's own before it had none; a client that asks for no bound gets the published one of the other routes.
DEFAULT_TOKENS: Final = 128
UNBOUNDED_TOKENS: Final = 512
_LINES: Final = "application/x-ndjson"
_SECOND: Final = 1_000_000_000
_ERRORS: Final = {"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}}

router = protected_router(responses=_ERRORS)


@router.get("/api/version")
async def ollama_version() -> OllamaVersion:
    """The version of Calomel."""
    return OllamaVersion(version=version())


@router.get("/api/tags")
async def ollama_tags(request: Request) -> Tags:
    """The model that answers, whatever a request names."""
    model = door_of(request).model
    changed = datetime.fromtimestamp(model.created, UTC).isoformat()
    return Tags(models=[Tag(name=model.id, model=model.id, modified_at=changed)])


@router.post("/api/generate", response_model=GenerateResponse, dependencies=[Depends(require_json)])
async def ollama_generate(body: GenerateRequest, request: Request) -> Response:
    """Fill the hole, or rewrite one of Zed's regions; as lines of JSON unless `stream` is false."""
    prompt = body.prompt or ""
    if is_zeta(prompt) and not body.suffix:
        return await _edit(body, request)
    async with visit(request, "generate") as visiting:
        if not prompt and not body.suffix:
            # Asks for the model to be loaded, which it is by now.
            done = GenerateResponse(**_head(visiting, body), response="", done_reason="load")
            return _whole(visiting, body, [done])
        options = body.options or Options()
        wanted = await fill_of(
            visiting,
            parse_fim(prompt, body.suffix),
            max_tokens=_most(options),
            stop=tuple(options.stop or ()),
            sampling=llama_sampling_of(options),
        )
        if body.stream is False:
            fill = await visiting.fill(wanted)
            answered(visiting, fill)
            return _whole(visiting, body, [_done(visiting, body, fill, fill.text)])
        return await _stream(visiting, body, wanted)


async def _edit(body: GenerateRequest, request: Request) -> Response:
    try:
        zeta = parse_zeta(body.prompt or "")
    except ForeignPromptError as error:
        raise InvalidParameterError(str(error), "prompt") from None
    stop = (body.options or Options()).stop or ()
    async with visit(request, "zeta") as visiting:
        text, used = await rewritten(visiting, zeta, stop, client_of(request))
        done = GenerateResponse(
            **_head(visiting, body),
            response=text if body.stream is False else "",
            done_reason="stop",
            prompt_eval_count=used.prompt_tokens,
            eval_count=used.completion_tokens,
        )
        return _whole(visiting, body, [done] if body.stream is False else [_chunk(visiting, body, text), done])


async def _stream(visiting: Visit, body: GenerateRequest, wanted: FillRequest) -> Response:
    response = visiting.stream(_lines(visiting, body, await visiting.begun(visiting.filler.stream(wanted))))
    response.headers["content-type"] = _LINES
    return response


async def _lines(visiting: Visit, body: GenerateRequest, items: AsyncIterator[str | Fill]) -> AsyncIterator[bytes]:
    try:
        async for item in items:
            if not isinstance(item, str):
                answered(visiting, item)
                yield _line(_done(visiting, body, item, ""))
            elif item:
                yield _line(_chunk(visiting, body, item))
    except Exception as error:  # noqa: BLE001 (the status has been sent; the error can only be one more line)
        refusal = visiting.door.refusal(error, visiting.opened)
        if refusal is None:
            log_failure(error)
        yield _line(ErrorResponse.model_validate((refusal or DoorError()).body()))


def _whole(visiting: Visit, body: GenerateRequest, answers: Sequence[GenerateChunk]) -> Response:
    """An answer that is known already."""
    if body.stream is False:
        return JSONResponse(answers[-1].model_dump())

    async def lines() -> AsyncIterator[bytes]:
        for each in answers:
            yield _line(each)

    response = visiting.stream(lines())
    response.headers["content-type"] = _LINES
    return response


def _line(data: GenerateChunk | ErrorResponse) -> bytes:
    return data.model_dump_json().encode() + b"\n"


def _head(visiting: Visit, body: GenerateRequest) -> dict[str, Any]:
    created = datetime.fromtimestamp(visiting.created, UTC).isoformat()
    return {"model": body.model or visiting.door.model.id, "created_at": created}


def _chunk(visiting: Visit, body: GenerateRequest, text: str) -> GenerateChunk:
    return GenerateChunk(**_head(visiting, body), response=text)


def _done(visiting: Visit, body: GenerateRequest, fill: Fill, text: str) -> GenerateResponse:
    return GenerateResponse(
        **_head(visiting, body),
        response=text,
        done_reason=finish_reason(fill),
        total_duration=int(fill.seconds * _SECOND),
        prompt_eval_count=fill.prompt_tokens,
        prompt_eval_duration=int(fill.result.prefill_seconds * _SECOND),
        eval_count=fill.completion_tokens,
        eval_duration=int(fill.result.denoise_seconds * _SECOND),
    )


def _most(options: Options) -> int:
    if options.num_predict is None:
        return DEFAULT_TOKENS
    return min(options.num_predict, MAX_TOKENS) if options.num_predict > 0 else UNBOUNDED_TOKENS
