"""Bodies of Ollama's routes, as far as clients that complete code use them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from calomel.server.schemas.base import (
    MAX_NAME_CHARACTERS,
    MAX_TOKENS,
    Flag,
    Integer,
    LlamaSampledBody,
    Text,
)

_MOST_ASKED: Final = 8 * MAX_TOKENS


def _no_format(value: Any) -> Any:
    if value not in (None, ""):
        raise ValueError("Answers have no format here: leave it out")
    return None


class Options(LlamaSampledBody):
    """Those of Ollama's options that mean something here. A negative `num_predict` sets no bound of its own."""

    num_predict: Annotated[Integer, Field(ge=-2, le=_MOST_ASKED)] | None = None


class GenerateRequest(BaseModel):
    """A prompt with or without `suffix`. It is streamed unless `stream` is false: that is Ollama's default.

    There are no templates and no conversations here, so every prompt is taken as `raw`.
    """

    model_config = ConfigDict(extra="ignore")

    model: Annotated[Text, Field(max_length=MAX_NAME_CHARACTERS)] | None = None
    prompt: Text | None = None
    suffix: Text | None = None
    stream: Flag | None = None
    format: Annotated[None, BeforeValidator(_no_format)] = None
    options: Options | None = None


class GenerateChunk(BaseModel):
    """A line of a streamed answer."""

    model: str
    created_at: str
    response: str
    done: bool = False


class GenerateResponse(GenerateChunk):
    """The answer, or the last line of a streamed one. Durations in nanoseconds."""

    done: bool = True
    done_reason: Literal["stop", "length", "load"]
    total_duration: int = 0
    load_duration: int = 0
    prompt_eval_count: int = 0
    prompt_eval_duration: int = 0
    eval_count: int = 0
    eval_duration: int = 0


class ModelDetails(BaseModel):
    """What Ollama tells of a checkpoint."""

    parent_model: str = ""
    format: str = "safetensors"
    family: str = "calomel"
    families: list[str] = ["calomel"]
    parameter_size: str = ""
    quantization_level: str = ""


class Tag(BaseModel):
    """The model of this server."""

    name: str
    model: str
    modified_at: str
    size: int = 0
    digest: str = ""
    details: ModelDetails = ModelDetails()


class Tags(BaseModel):
    """Answer of `/api/tags`."""

    models: list[Tag]


class OllamaVersion(BaseModel):
    """Answer of `/api/version`: of Calomel."""

    version: str
