"""Bodies of `/v1/fim/completions` (FIM of the OpenAPI document of 2026-07)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, Field

from calomel.server.schemas.base import (
    MAX_NAME_CHARACTERS,
    MAX_STEPS,
    MAX_TOKENS,
    MAX_TOP_K,
    FinishReason,
    Flag,
    Integer,
    Number,
    SampledBody,
    StreamOptions,
    Text,
    Usage,
    not_zero,
)
from calomel.server.schemas.response_format import ResponseFormat

# The first blank line: the published default for this route.
DEFAULT_STOP: Final = ("\n\n", "\n \n")


class FimRequest(SampledBody):
    """Published FIMCompletionRequest; null means "not sent".

    Besides: `temperature`, `seed`, `min_tokens`; `max_steps` bounds the denoising steps of a canvas; with `diffusing`
    a stream has whole canvas states that take each other's place, not deltas.

    The published default of `presence_penalty` is 1.5. It is not applied: it was chosen for another model and makes
    code worse, which repeats its identifiers for good reasons. A penalty acts only when it is sent.
    """

    prompt: Text
    model: Annotated[Text, Field(min_length=1, max_length=MAX_NAME_CHARACTERS)]
    suffix: Text | None = None
    max_tokens: Annotated[Integer, Field(ge=1, le=MAX_TOKENS)] | None = None
    min_tokens: Annotated[Integer, Field(ge=0, le=MAX_TOKENS)] | None = None
    top_k: Annotated[Integer, Field(ge=-1, le=MAX_TOP_K), AfterValidator(not_zero)] | None = None
    repetition_penalty: Annotated[Number, Field(gt=0)] | None = None
    seed: Annotated[Integer, Field(ge=0, lt=2**63)] | None = None
    max_steps: Annotated[Integer, Field(ge=1, le=MAX_STEPS)] | None = None
    stream: Flag | None = None
    diffusing: Flag | None = None
    response_format: ResponseFormat | None = None
    stream_options: StreamOptions | None = None


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


class FimCompletion(BaseModel):
    """Published FIMCompletionResponse."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[FimChoice]
    usage: Usage
    warning: str | None = None


class FimChunkChoice(BaseModel):
    """Published TextChunkChoice; `text` is a delta."""

    index: int = 0
    text: str
    finish_reason: FinishReason | None = None


class FimChunk(BaseModel):
    """Published TextCompletionChunk."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[FimChunkChoice]


class Canvas(BaseModel):
    """One canvas state, token by token.

    Attributes:
        step: forwards of this answer so far.
        pieces: the tokens' texts; a light shade (U+2591) for one that is not known yet.
        revealed: of each token, whether it is there to stay.
    """

    step: int
    pieces: list[str]
    revealed: list[bool]


class FimCanvasChunk(FimChunk):
    """With `diffusing`: `text` is the whole answer as it is known by now, and takes the place of the last."""

    calomel: Canvas


class FimUsageChunk(FimChunk):
    """The last chunk when usage was asked for: no choices."""

    choices: list[FimChunkChoice] = []
    usage: Usage
