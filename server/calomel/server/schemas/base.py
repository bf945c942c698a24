"""What bodies of several routes have in common: strict field types, limits, token counts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

# Published limits.
MAX_TOKENS = 8192
MAX_TOP_K = 1000
# Ours: the canvas has at most so many tokens anyway, and each step reveals one.
MAX_STEPS = 256
# Ours: generous against what clients send (at most about ten), small enough that matching costs nothing.
MAX_STOPS = 16
MAX_STOP_CHARACTERS = 256
MAX_NAME_CHARACTERS = 256


def _number(value: Any) -> Any:
    # JSON has numbers; a text or a truth value in their place is a mistake of the client, not a number.
    if isinstance(value, bool | str):
        raise ValueError("Input should be a number")  # noqa: TRY004 (pydantic turns ValueError into a field error)
    return value


def _truth(value: Any) -> Any:
    if value is not None and not isinstance(value, bool):
        raise ValueError("Input should be true or false")
    return value


def not_zero(value: int | None) -> int | None:
    """Of `top_k`: -1 means all, 0 nothing that makes sense."""
    if value == 0:
        raise ValueError("Input should be -1 or between 1 and 1000")
    return value


def one_or_many(value: Any) -> Any:
    """A text alone is a list of one."""
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


class SampledBody(BaseModel):
    """How tokens are drawn, and where an answer ends; null means "not sent", unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    temperature: Annotated[Number, Field(ge=0, le=2)] | None = None
    top_p: Annotated[Number, Field(ge=0, le=1)] | None = None
    top_k: Annotated[Integer, Field(ge=-1, le=MAX_TOP_K)] | None = None
    frequency_penalty: Annotated[Number, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[Number, Field(ge=-2, le=2)] | None = None
    stop: Annotated[list[StopText], BeforeValidator(one_or_many), Field(max_length=MAX_STOPS)] | None = None


class LlamaSampledBody(SampledBody):
    """The same in the words of llama.cpp and Ollama, where zero and negative numbers may mean none."""

    repeat_penalty: Annotated[Number, Field(ge=0)] | None = None
    seed: Annotated[Integer, Field(ge=-(2**63), lt=2**63)] | None = None


class StreamOptions(BaseModel):
    """Published StreamOptions."""

    include_usage: Flag | None = None


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
