"""POST /v1/completions, as OpenAI's older clients know it: a hole in whatever format they write it, or Zed's region."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, Field
from starlette.responses import Response

from calomel.prompts.fim_tokens import parse_fim
from calomel.prompts.zeta import is_zeta
from calomel.server.access import protected_router
from calomel.server.answers import DEFAULT_MAX_TOKENS, Ended, fill_of, filled, known, published, zed_visit
from calomel.server.door import Visit, Wording, visit
from calomel.server.wire import (
    MAX_TOKENS,
    MOST_ASKED,
    Chunk,
    Completion,
    FinishReason,
    Flag,
    Integer,
    LeastTokens,
    Name,
    PublishedBody,
    Text,
)


def _one_text(value: Any) -> Any:
    """A list with one text is that text; tokens of another model's vocabulary mean nothing here."""
    if isinstance(value, list):
        if len(value) != 1 or not isinstance(value[0], str):
            raise ValueError("Input should be a text, or a list with one text")
        return value[0]
    return value


def _no_echo(value: Any) -> Any:
    if value is True:
        raise ValueError("The prompt is not repeated: leave echo out")
    return value


class CompletionRequest(PublishedBody):
    """A prompt with or without fill-in-the-middle tokens, or one of Zed's; null means "not sent".

    One choice is made (`n`). No stop is assumed. Some servers take a `top_k` of 0 for all.
    """

    prompt: Annotated[Text, BeforeValidator(_one_text)]
    model: Name | None = None
    suffix: Text | None = None
    max_tokens: Annotated[Integer, Field(ge=1, le=MOST_ASKED)] | None = None
    min_tokens: LeastTokens | None = None
    n: Annotated[Integer, Field(ge=1, le=1)] | None = None
    echo: Annotated[Flag, BeforeValidator(_no_echo)] | None = None


class CompletionChoice(BaseModel):
    """One answer; of a stream, what is new of it."""

    index: int = 0
    text: str
    logprobs: None = None
    finish_reason: FinishReason | None


class TextCompletion(Completion[CompletionChoice]):
    """The answer. Zed wants each of its fields."""

    object: Literal["text_completion"] = "text_completion"


class CompletionChunk(Chunk[CompletionChoice]):
    """A part of a streamed answer."""

    object: Literal["text_completion"] = "text_completion"


router = protected_router()


@router.post("/v1/completions", response_model=TextCompletion)
async def create_completion(body: CompletionRequest, request: Request) -> Response:
    """Fill the hole, or rewrite the region; with `stream`, as server-sent events."""
    if is_zeta(body.prompt) and not body.suffix:
        async with zed_visit(request, body.prompt, body.stop or ()) as (visiting, ending):
            parts = [ending.text] if ending.text else []
            return known(visiting, _wording(visiting, body), ending, parts, stream=body.stream)
    async with visit(request, "completions") as visiting:
        wanted = await fill_of(
            visiting,
            parse_fim(body.prompt, body.suffix),
            max_tokens=min(body.max_tokens or DEFAULT_MAX_TOKENS, MAX_TOKENS),
            min_tokens=body.min_tokens or 0,
            stop=tuple(body.stop or ()),
            sampling=body.sampling(),
        )
        return await filled(visiting, _wording(visiting, body), wanted, stream=body.stream)


def _wording(visiting: Visit, body: CompletionRequest) -> Wording[Ended]:
    head = visiting.head(body.model)
    return published(head, TextCompletion, _choice, CompletionChunk, _choice, usage=body.wants_usage)


def _choice(text: str, reason: FinishReason | None) -> CompletionChoice:
    return CompletionChoice(text=text, finish_reason=reason)
