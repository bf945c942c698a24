"""Bodies of llama.cpp's `/infill`, as its editor plugins use it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from calomel.server.schemas.base import (
    MAX_TOKENS,
    Flag,
    Integer,
    LlamaSampledBody,
    Number,
    Text,
)

# The plugins send 16 by default, and 64 where their manual goes far.
_MOST_EXTRAS: Final = 1024
_MOST_FIELDS: Final = 64
_MOST_ASKED: Final = 8 * MAX_TOKENS
_HOUR: Final = 3_600_000
_MOST_INDENT: Final = 1000


class Extra(BaseModel):
    """A piece of another file, or of this one."""

    model_config = ConfigDict(extra="ignore")

    filename: Annotated[Text, Field(max_length=4096)] | None = None
    text: Text


class InfillRequest(LlamaSampledBody):
    """Lines before the cursor's, the beginning of its line (`prompt`), and what stands behind; null means "not sent".

    With `n_predict` 0 nothing is answered: the plugins ask so to warm a cache. `t_max_predict_ms` bounds the time for
    the answer; `n_indent` ends it before a line that is indented less, except in a stream.
    """

    input_prefix: Text | None = None
    input_suffix: Text | None = None
    input_extra: Annotated[list[Extra], Field(max_length=_MOST_EXTRAS)] | None = None
    prompt: Text | None = None
    n_predict: Annotated[Integer, Field(ge=-1, le=_MOST_ASKED)] | None = None
    n_indent: Annotated[Integer, Field(ge=0, le=_MOST_INDENT)] | None = None
    t_max_predict_ms: Annotated[Number, Field(ge=-1, le=_HOUR)] | None = None
    stream: Flag | None = None
    response_fields: Annotated[list[Annotated[Text, Field(max_length=256)]], Field(max_length=_MOST_FIELDS)] | None = (
        None
    )


class Timings(BaseModel):
    """What the plugins show: tokens, milliseconds, tokens a second."""

    cache_n: int = 0
    prompt_n: int = 0
    prompt_ms: float = 0.0
    prompt_per_token_ms: float = 0.0
    prompt_per_second: float = 0.0
    predicted_n: int = 0
    predicted_ms: float = 0.0
    predicted_per_token_ms: float = 0.0
    predicted_per_second: float = 0.0


class InfillChunk(BaseModel):
    """A part of a streamed answer."""

    index: int = 0
    content: str
    tokens: list[int] = []
    stop: bool = False
    id_slot: int = 0
    tokens_predicted: int = 0
    tokens_evaluated: int = 0


class InfillResponse(InfillChunk):
    """The answer, or the end of a streamed one. The prompt is not sent back.

    Every field has a default: with `response_fields` only those that the client names are sent.
    """

    content: str = ""
    stop: bool = True
    model: str = ""
    generation_settings: dict[str, Any] = {}
    prompt: str = ""
    has_new_line: bool = False
    truncated: bool = False
    stop_type: Literal["eos", "limit", "word"] = "eos"
    stopping_word: str = ""
    tokens_cached: int = 0
    timings: Timings = Timings()
