"""Bodies of `/v1/edit/completions` (Edit of the OpenAPI document of 2026-07)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from calomel.server.schemas.base import (
    MAX_NAME_CHARACTERS,
    MAX_STOPS,
    MAX_TOKENS,
    FinishReason,
    Flag,
    Integer,
    Number,
    StopText,
    StreamOptions,
    Text,
    Usage,
    one_or_many,
)
from calomel.server.schemas.messages import OneMessage


class EditRequest(BaseModel):
    """Published EditCompletionRequest, with what clients send besides; null means "not sent".

    What is drawn is decided by the filter, not by a temperature: the fields of sampling are checked and have no effect.
    """

    model_config = ConfigDict(extra="ignore")

    messages: OneMessage
    model: Annotated[Text, Field(min_length=1, max_length=MAX_NAME_CHARACTERS)]
    max_tokens: Annotated[Integer, Field(ge=1, le=MAX_TOKENS)] | None = None
    temperature: Annotated[Number, Field(ge=0, le=2)] | None = None
    top_p: Annotated[Number, Field(ge=0, le=1)] | None = None
    frequency_penalty: Annotated[Number, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[Number, Field(ge=-2, le=2)] | None = None
    stop: Annotated[list[StopText], BeforeValidator(one_or_many), Field(max_length=MAX_STOPS)] | None = None
    stream: Flag | None = None
    stream_options: StreamOptions | None = None


class AssistantMessage(BaseModel):
    """Published EditMessage; `tool_calls` is there because a client refuses null and its absence alike."""

    role: Literal["assistant"] = "assistant"
    content: str
    tool_calls: list[None] = []


class EditChoice(BaseModel):
    """Published EditChoice."""

    index: int = 0
    message: AssistantMessage
    finish_reason: FinishReason


class EditCompletion(BaseModel):
    """Published EditCompletionResponse."""

    id: str
    object: Literal["edit.completion"] = "edit.completion"
    created: int
    model: str
    choices: list[EditChoice]
    usage: Usage
    warning: str | None = None


class Delta(BaseModel):
    """What a chunk adds to the answer."""

    role: Literal["assistant"] | None = None
    content: str


class EditChunkChoice(BaseModel):
    """One delta."""

    index: int = 0
    delta: Delta
    finish_reason: FinishReason | None = None


class EditChunk(BaseModel):
    """A chunk of a streamed answer, as clients of the chat route know it."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[EditChunkChoice]


class EditUsageChunk(EditChunk):
    """The last chunk when usage was asked for: no choices."""

    choices: list[EditChunkChoice] = []
    usage: Usage
