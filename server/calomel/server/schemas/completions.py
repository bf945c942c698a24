"""Bodies of `/v1/completions`, as OpenAI's older clients know it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field

from calomel.server.schemas.base import (
    MAX_NAME_CHARACTERS,
    MAX_TOKENS,
    FinishReason,
    Flag,
    Integer,
    Number,
    SampledBody,
    StreamOptions,
    Text,
    Usage,
)

# One client asks for four times what its user set. The answer has `MAX_TOKENS` at most in any case.
_MOST_ASKED: Final = 8 * MAX_TOKENS


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


class CompletionRequest(SampledBody):
    """A prompt with or without fill-in-the-middle tokens, or one of Zed's; null means "not sent".

    One choice is made (`n`). No stop is assumed.
    """

    prompt: Annotated[Text, BeforeValidator(_one_text)]
    model: Annotated[Text, Field(max_length=MAX_NAME_CHARACTERS)] | None = None
    suffix: Text | None = None
    max_tokens: Annotated[Integer, Field(ge=1, le=_MOST_ASKED)] | None = None
    min_tokens: Annotated[Integer, Field(ge=0, le=MAX_TOKENS)] | None = None
    n: Annotated[Integer, Field(ge=1, le=1)] | None = None
    echo: Annotated[Flag, BeforeValidator(_no_echo)] | None = None
    repetition_penalty: Annotated[Number, Field(gt=0)] | None = None
    seed: Annotated[Integer, Field(ge=0, lt=2**63)] | None = None
    stream: Flag | None = None
    stream_options: StreamOptions | None = None


class CompletionChoice(BaseModel):
    """One answer; of a stream, what is new of it."""

    index: int = 0
    text: str
    logprobs: None = None
    finish_reason: FinishReason | None


class Completion(BaseModel):
    """The answer. Zed wants each of its fields."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage
    warning: str | None = None


class CompletionChunk(BaseModel):
    """A part of a streamed answer."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]


class CompletionUsageChunk(CompletionChunk):
    """The last part when usage was asked for: no choices."""

    choices: list[CompletionChoice] = []
    usage: Usage
