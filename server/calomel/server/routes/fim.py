"""POST /v1/fim/completions: the text between `prompt` and `suffix` (FIM of the OpenAPI document of 2026-07)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, Literal

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from calomel.prompts.grammar import GrammarConstraint, GrammarError, json_form, pattern_form
from calomel.server.access import protected_router
from calomel.server.answers import DEFAULT_MAX_TOKENS, filled, nearest, published
from calomel.server.door import Visit, visit
from calomel.server.errors import InvalidParameterError
from calomel.server.wire import (
    AnswerTokens,
    Chunk,
    Completion,
    FinishReason,
    Flag,
    Integer,
    LeastTokens,
    ModelName,
    PublishedBody,
    ResponseFormat,
    Text,
    TopK,
)
from calomel.suggest.candidates import context_tokens

if TYPE_CHECKING:
    from calomel.suggest.completer import FillRequest
    from calomel.suggest.filler import Filler


# The first blank line: the published default for this route.
DEFAULT_STOP: Final = ("\n\n", "\n \n")
# Ours: the canvas has at most so many tokens anyway, and each step reveals one.
_MAX_STEPS: Final = 256
# Compiling is bounded by its own budget; this bounds the waiting on a busy machine.
_COMPILE_SECONDS: Final = 5.0


class FimRequest(PublishedBody):
    """Published FIMCompletionRequest; null means "not sent".

    Besides: `temperature`, `seed`, `min_tokens`; `max_steps` bounds the denoising steps of a canvas; with `diffusing`
    a stream has whole canvas states that take each other's place, not deltas.

    The published default of `presence_penalty` is 1.5. It is not applied: it was chosen for another model and makes
    code worse, which repeats its identifiers for good reasons. A penalty acts only when it is sent.
    """

    prompt: Text
    model: ModelName
    suffix: Text | None = None
    max_tokens: AnswerTokens | None = None
    min_tokens: LeastTokens | None = None
    top_k: TopK | None = None
    max_steps: Annotated[Integer, Field(ge=1, le=_MAX_STEPS)] | None = None
    diffusing: Flag | None = None
    response_format: ResponseFormat | None = None


class FimMessage(BaseModel):
    """The same text for clients of Mistral's route of this name, which read it here."""

    role: Literal["assistant"] = "assistant"
    content: str


class FimChoice(BaseModel):
    """Published TextCompletionChoice, with the `message` of Mistral's besides."""

    index: int = 0
    text: str
    message: FimMessage
    finish_reason: FinishReason


class FimCompletion(Completion[FimChoice]):
    """Published FIMCompletionResponse."""

    object: Literal["text_completion"] = "text_completion"


class FimChunkChoice(BaseModel):
    """Published TextChunkChoice; `text` is a delta."""

    index: int = 0
    text: str
    finish_reason: FinishReason | None = None


class FimChunk(Chunk[FimChunkChoice]):
    """Published TextCompletionChunk."""

    object: Literal["text_completion"] = "text_completion"


def _choice(text: str, reason: FinishReason) -> FimChoice:
    return FimChoice(text=text, message=FimMessage(content=text), finish_reason=reason)


def _delta(text: str, reason: FinishReason | None) -> FimChunkChoice:
    return FimChunkChoice(text=text, finish_reason=reason)


router = protected_router()


@router.post("/v1/fim/completions", response_model=FimCompletion)
async def create_fim_completion(body: FimRequest, request: Request) -> Response:
    """Fill the hole; with `stream`, as server-sent events."""
    async with visit(request, "fim") as visiting:
        constraint = await _constraint(visiting.filler, body.response_format)
        # Looking for secrets in megabytes takes seconds, which others do not wait for.
        wanted = replace(await visiting.prepare(None, _fill_request, visiting, body), constraint=constraint)
        wording = published(
            visiting.head(body.model),
            FimCompletion,
            _choice,
            FimChunk,
            _delta,
            usage=body.wants_usage,
            canvases=bool(body.diffusing),
        )
        return await filled(visiting, wording, wanted, stream=body.stream, canvases=body.diffusing)


def _fill_request(visiting: Visit, body: FimRequest) -> FillRequest:
    """The client's words in ours, with the published defaults (but see FimRequest on penalties); secrets masked."""
    from calomel.suggest.completer import FillRequest  # the engine imports torch, which came with the model

    max_tokens = DEFAULT_MAX_TOKENS if body.max_tokens is None else body.max_tokens
    most = context_tokens(visiting.info, visiting.door.settings.context_tokens, max_tokens)
    prefix, suffix = nearest(body.prompt, body.suffix or "", most)
    # JSON that is asked for may have a blank line in it.
    stop = DEFAULT_STOP if body.response_format is None or body.response_format.type == "text" else ()
    return FillRequest(
        prefix=visiting.door.mask(prefix),
        suffix=visiting.door.mask(suffix),
        max_tokens=max_tokens,
        min_tokens=body.min_tokens or 0,
        stop=stop if body.stop is None else tuple(body.stop),
        sampling=body.sampling(),
        max_steps=body.max_steps,
        max_context=most,
        fitted=True,
    )


async def _constraint(filler: Filler, asked: ResponseFormat | None) -> GrammarConstraint | None:
    """What the answer may be; None for any text.

    Raises:
        InvalidParameterError: the schema or pattern is malformed, too large, or uses what is not supported.
    """
    if asked is None or asked.type == "text":
        return None
    schema = asked.schema_of()

    def compiled() -> GrammarConstraint:
        return filler.grammars.compile(pattern_form(asked.pattern or "") if schema is None else json_form(schema))

    try:
        return await asyncio.wait_for(asyncio.to_thread(compiled), _COMPILE_SECONDS)
    except TimeoutError:
        raise InvalidParameterError("response_format: the schema is too complex", "response_format") from None
    except GrammarError as error:
        raise InvalidParameterError(f"response_format: {error}", "response_format") from None
