"""The bodies of the published API, field by field (FIM, Models and Errors of the OpenAPI document of 2026-07)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

# Published limits.
MAX_TOKENS = 8192
MAX_TOP_K = 1000
# Ours: generous against what clients send (at most about ten), small enough that matching costs nothing.
MAX_STOPS = 16
MAX_STOP_CHARACTERS = 256
MAX_NAME_CHARACTERS = 256
# The first blank line: the published default for this route.
DEFAULT_STOP = ("\n\n", "\n \n")


def _number(value: Any) -> Any:
    # JSON has numbers; a text or a truth value in their place is a mistake of the client, not a number.
    if isinstance(value, bool | str):
        raise ValueError("Input should be a number")  # noqa: TRY004 (pydantic turns ValueError into a field error)
    return value


def _truth(value: Any) -> Any:
    if value is not None and not isinstance(value, bool):
        raise ValueError("Input should be true or false")
    return value


def _not_zero(value: int | None) -> int | None:
    if value == 0:
        raise ValueError("Input should be -1 or between 1 and 1000")
    return value


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _unicode(value: str) -> str:
    # JSON can escape half of a surrogate pair; no tokenizer and no UTF-8 file can hold one.
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("Input should be valid Unicode text") from None
    return value


Text = Annotated[str, AfterValidator(_unicode)]
Integer = Annotated[int, BeforeValidator(_number)]
Number = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Flag = Annotated[bool, BeforeValidator(_truth)]
StopText = Annotated[Text, Field(min_length=1, max_length=MAX_STOP_CHARACTERS)]


class StreamOptions(BaseModel):
    """Published StreamOptions."""

    include_usage: Flag | None = None


class FimRequest(BaseModel):
    """Published FIMCompletionRequest, with `temperature` and `seed` besides; null means "not sent".

    The published default of `presence_penalty` is 1.5. It is not applied: it was chosen for another model and makes
    code worse, which repeats its identifiers for good reasons. A penalty acts only when it is sent.
    """

    model_config = ConfigDict(extra="ignore")

    prompt: Text
    model: Annotated[Text, Field(min_length=1, max_length=MAX_NAME_CHARACTERS)]
    suffix: Text | None = None
    max_tokens: Annotated[Integer, Field(ge=1, le=MAX_TOKENS)] | None = None
    temperature: Annotated[Number, Field(ge=0, le=2)] | None = None
    top_p: Annotated[Number, Field(ge=0, le=1)] | None = None
    top_k: Annotated[Integer, Field(ge=-1, le=MAX_TOP_K), AfterValidator(_not_zero)] | None = None
    frequency_penalty: Annotated[Number, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[Number, Field(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[Number, Field(gt=0)] | None = None
    seed: Annotated[Integer, Field(ge=0, lt=2**63)] | None = None
    stop: Annotated[list[StopText], BeforeValidator(_one_or_many), Field(max_length=MAX_STOPS)] | None = None
    stream: Flag | None = None
    stream_options: StreamOptions | None = None


class CompletionTokensDetails(BaseModel):
    """Newer form of `reasoning_tokens`."""

    reasoning_tokens: int = 0


class PromptTokensDetails(BaseModel):
    """Newer form of `cached_input_tokens`."""

    cached_tokens: int


class Usage(BaseModel):
    """Token counts, in the flat form of the document and in the nested form of the newer clients."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    reasoning_tokens: int = 0
    cached_input_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails = CompletionTokensDetails()

    @classmethod
    def count(cls, prompt: int, completion: int, cached: int) -> Usage:
        """Usage of one request, in tokens; `cached` of `prompt` came from the prefix cache."""
        return cls(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=prompt + completion,
            cached_input_tokens=cached,
            prompt_tokens_details=PromptTokensDetails(cached_tokens=cached),
        )


FinishReason = Literal["stop", "length"]


class FimChoice(BaseModel):
    """Published TextCompletionChoice."""

    index: int = 0
    text: str
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


class FimUsageChunk(FimChunk):
    """The last chunk when usage was asked for: no choices."""

    choices: list[FimChunkChoice] = []
    usage: Usage


class Pricing(BaseModel):
    """Published PricingInfo, per token. Your own machine sends no bill."""

    prompt: str = "0"
    completion: str = "0"
    input_cache_reads: str = "0"
    input_cache_writes: str = "0"


class ModelObject(BaseModel):
    """Published ModelObject, with the `supported_endpoints` that newer clients require."""

    id: str
    name: str
    created: int
    description: str
    input_modalities: list[str] = ["text"]
    output_modalities: list[str] = ["text"]
    context_length: int
    max_output_length: int
    pricing: Pricing = Pricing()
    supported_sampling_parameters: list[str]
    supported_features: list[str] = []
    supported_endpoints: list[str] = ["fim.completions"]


class Models(BaseModel):
    """Published ModelsResponse."""

    data: list[ModelObject]


class ErrorObject(BaseModel):
    """Published ErrorObject."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorResponse(BaseModel):
    """Published ErrorResponse."""

    error: ErrorObject
