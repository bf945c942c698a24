"""POST /v1/fim/completions: the text between `prompt` and `suffix` (FIM of the OpenAPI document of 2026-07).

POST /v1/completions, for OpenAI's older clients: a hole in whatever format they write it, or one of Zed's regions.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, Literal

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, Field
from starlette.responses import Response

from calomel.engine import Constraint
from calomel.infer.completer import Answerer, FillRequest, UnsupportedError
from calomel.prompts.grammar import GrammarError, json_form, pattern_form
from calomel.prompts.parts import PromptParts
from calomel.server import wire
from calomel.server.answers import DEFAULT_MAX_TOKENS, Ended, completed, fill_of, filled, published
from calomel.server.app_state import AnswerFormat, RequestContext, request_context
from calomel.server.errors import InvalidParameterError
from calomel.server.middleware import protected_router

# The first blank line: the published default for this route.
DEFAULT_STOP: Final = ("\n\n", "\n \n")
# Ours: the canvas has at most this many tokens anyway, and each step reveals one.
_MAX_STEPS: Final = 256
# Compilation has its own budget; this bounds the wait on a busy machine.
_COMPILE_SECONDS: Final = 5.0


class FimRequest(wire.PublishedBody):
    """Published FIMCompletionRequest; null means "not sent".

    In addition: `temperature`, `seed`, `min_tokens`; `max_steps` bounds the denoising steps of a canvas; with
    `diffusing` a stream has whole canvas states, each replacing the one before, not deltas.

    The published default of `presence_penalty` is 1.5. It is not applied: it was chosen for another model and makes
    code worse, which repeats its identifiers for good reasons. A penalty applies only when it is sent.
    """

    prompt: wire.Text
    model: wire.ModelName
    suffix: wire.Text | None = None
    max_tokens: wire.AnswerTokens | None = None
    min_tokens: wire.LeastTokens | None = None
    top_k: wire.TopK | None = None
    max_steps: Annotated[wire.Integer, Field(ge=1, le=_MAX_STEPS)] | None = None
    diffusing: wire.Flag | None = None
    response_format: wire.ResponseFormat | None = None


class FimMessage(BaseModel):
    """The same text for clients of Mistral's route of this name, which read it here."""

    role: Literal["assistant"] = "assistant"
    content: str


class FimChoice(BaseModel):
    """Published TextCompletionChoice, plus the `message` of Mistral's."""

    index: int = 0
    text: str
    message: FimMessage
    finish_reason: wire.OpenAIFinishReason


class FimCompletion(wire.Completion[FimChoice]):
    """Published FIMCompletionResponse."""

    object: Literal["text_completion"] = "text_completion"


class FimChunkChoice(BaseModel):
    """Published TextChunkChoice; `text` is a delta."""

    index: int = 0
    text: str
    finish_reason: wire.OpenAIFinishReason | None = None


class FimChunk(wire.Chunk[FimChunkChoice]):
    """Published TextCompletionChunk."""

    object: Literal["text_completion"] = "text_completion"


def _fim_choice(text: str, reason: wire.OpenAIFinishReason) -> FimChoice:
    return FimChoice(text=text, message=FimMessage(content=text), finish_reason=reason)


def _fim_delta(text: str, reason: wire.OpenAIFinishReason | None) -> FimChunkChoice:
    return FimChunkChoice(text=text, finish_reason=reason)


router = protected_router()


@router.post("/v1/fim/completions", response_model=FimCompletion)
@router.post("/api/fim/completions", response_model=FimCompletion)  # a gateway's
async def create_fim_completion(body: FimRequest, request: Request) -> Response:
    """Fill the hole; with `stream`, as server-sent events."""
    async with request_context(request, "fim") as context:
        # Requested JSON may contain a blank line.
        stop = DEFAULT_STOP if body.response_format is None or body.response_format.type == "text" else ()
        fill_request = FillRequest(
            "fill",
            PromptParts(),
            max_tokens=DEFAULT_MAX_TOKENS if body.max_tokens is None else body.max_tokens,
            min_tokens=body.min_tokens or 0,
            stop=stop if body.stop is None else tuple(body.stop),
            sampling=body.sampling(),
            max_steps=body.max_steps,
            constraint=await _constraint(context.filler, body.response_format),
        )
        wanted = fill_of(context, PromptParts(prefix=body.prompt, suffix=body.suffix or ""), fill_request)
        answer_format = published(
            context.head(body.model),
            FimCompletion,
            _fim_choice,
            FimChunk,
            _fim_delta,
            usage=body.wants_usage,
            canvases=bool(body.diffusing),
        )
        return await filled(context, answer_format, wanted, stream=body.stream, canvases=body.diffusing)


async def _constraint(model: Answerer, response_format: wire.ResponseFormat | None) -> Constraint | None:
    """The constraint on the answer; None for any text.

    Raises:
        InvalidParameterError: the schema or pattern is malformed, too large, or uses an unsupported feature.
    """
    if response_format is None or response_format.type == "text":
        return None
    schema = response_format.schema_of()

    def compiled() -> Constraint:
        return model.constraint(pattern_form(response_format.pattern or "") if schema is None else json_form(schema))

    try:
        return await asyncio.wait_for(asyncio.to_thread(compiled), _COMPILE_SECONDS)
    except TimeoutError:
        raise InvalidParameterError("response_format: the schema is too complex", "response_format") from None
    except (GrammarError, UnsupportedError) as error:
        raise InvalidParameterError(f"response_format: {error}", "response_format") from None


def _one_text(value: Any) -> Any:
    """A list with one text means that text; tokens of another model's vocabulary mean nothing here."""
    if isinstance(value, list):
        if len(value) != 1 or not isinstance(value[0], str):
            raise ValueError("Input should be a string, or a list with one string")
        return value[0]
    return value


def _no_echo(value: Any) -> Any:
    if value is True:
        raise ValueError("The prompt is not repeated: remove echo")
    return value


class CompletionRequest(wire.PublishedBody):
    """A prompt with or without fill-in-the-middle tokens, or one of Zed's; null means "not sent".

    Only one choice is made (`n`). There is no default stop. Some servers take a `top_k` of 0 to mean all.
    """

    prompt: Annotated[wire.Text, BeforeValidator(_one_text)]
    model: wire.Name | None = None
    suffix: wire.Text | None = None
    max_tokens: Annotated[wire.Integer, Field(ge=1, le=wire.MOST_ASKED)] | None = None
    min_tokens: wire.LeastTokens | None = None
    n: Annotated[wire.Integer, Field(ge=1, le=1)] | None = None
    echo: Annotated[wire.Flag, BeforeValidator(_no_echo)] | None = None


class CompletionChoice(BaseModel):
    """One answer; in a stream, what is new of it."""

    index: int = 0
    text: str
    logprobs: None = None
    finish_reason: wire.OpenAIFinishReason | None


class TextCompletion(wire.Completion[CompletionChoice]):
    """The answer. Zed requires all of its fields."""

    object: Literal["text_completion"] = "text_completion"


class CompletionChunk(wire.Chunk[CompletionChoice]):
    """A part of a streamed answer."""

    object: Literal["text_completion"] = "text_completion"


@router.post("/v1/completions", response_model=TextCompletion)
async def create_completion(body: CompletionRequest, request: Request) -> Response:
    """Fill the hole, or rewrite the region; with `stream`, as server-sent events."""

    def asked() -> FillRequest:
        return FillRequest(
            "fill",
            PromptParts(),
            max_tokens=min(body.max_tokens or DEFAULT_MAX_TOKENS, wire.MAX_TOKENS),
            min_tokens=body.min_tokens or 0,
            stop=tuple(body.stop or ()),
            sampling=body.sampling(),
        )

    def answer_format(context: RequestContext) -> AnswerFormat[Ended]:
        head = context.head(body.model)
        return published(head, TextCompletion, _choice, CompletionChunk, _choice, usage=body.wants_usage)

    return await completed(
        request, "completions", body.prompt, body.suffix, body.stop, asked, answer_format, stream=body.stream
    )


def _choice(text: str, reason: wire.OpenAIFinishReason | None) -> CompletionChoice:
    return CompletionChoice(text=text, finish_reason=reason)
