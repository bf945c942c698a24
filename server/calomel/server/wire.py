"""What bodies of several routes share: strict field types, limits, sampling, the shapes of answers and errors."""

from __future__ import annotations

from typing import Annotated, Any, Final, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, model_validator

from calomel.engine import SamplingParams
from calomel.infer.completer import CanvasText
from calomel.prompts.grammar import MAX_PATTERN_CHARACTERS

# Published limits.
MAX_TOKENS: Final = 8192
MAX_TOP_K: Final = 1000
# One client asks for four times what its user set. The answer has at most `MAX_TOKENS` in any case.
MOST_ASKED: Final = 8 * MAX_TOKENS
# Ours: generous compared with what clients send (at most about ten), small enough that matching costs nothing.
MAX_STOPS: Final = 16
MAX_STOP_CHARACTERS: Final = 256
MAX_NAME_CHARACTERS: Final = 256
# A penalty divides or multiplies logits; beyond these bounds float32 overflows, and within them it has long saturated.
_LOWEST_PENALTY: Final = 0.01
_HIGHEST_PENALTY: Final = 100.0


def _number(value: Any) -> Any:
    # JSON has numbers; a string or a boolean in their place is a mistake of the client, not a number.
    if isinstance(value, bool | str):
        raise ValueError("Input should be a number")  # noqa: TRY004 (pydantic turns ValueError into a field error)
    return value


def _not_zero(value: int | None) -> int | None:
    if value == 0:
        raise ValueError("Input should be -1 or between 1 and 1000")
    return value


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _text_of(value: Any) -> Any:
    """Content in parts becomes the text of its parts."""
    if not isinstance(value, list):
        return value
    texts = []
    for part in value:
        text = part.get("text") if isinstance(part, dict) else None
        if not isinstance(text, str):
            raise ValueError("Input should be text, or parts with a text each")  # noqa: TRY004 (a field error)
        texts.append(text)
    return "".join(texts)


# JSON can escape half of a surrogate pair, which no tokenizer and no UTF-8 file can hold. A bound makes pydantic check.
Text = Annotated[str, Field(min_length=0)]
Content = Annotated[Text, BeforeValidator(_text_of)]
Name = Annotated[str, Field(max_length=MAX_NAME_CHARACTERS)]
ModelName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS)]
Integer = Annotated[int, BeforeValidator(_number)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Flag = StrictBool
AnswerTokens = Annotated[Integer, Field(ge=1, le=MAX_TOKENS)]
LeastTokens = Annotated[Integer, Field(ge=0, le=MAX_TOKENS)]
Penalty = Annotated[Number, Field(ge=-2, le=2)]
# -1 means all; 0 means nothing useful.
TopK = Annotated[Integer, Field(ge=-1, le=MAX_TOP_K), AfterValidator(_not_zero)]
# A single string is a list of one.
Stops = Annotated[
    list[Annotated[Text, Field(min_length=1, max_length=MAX_STOP_CHARACTERS)]],
    BeforeValidator(_one_or_many),
    Field(max_length=MAX_STOPS),
]
OpenAIFinishReason = Literal["stop", "length"]


class StreamOptions(BaseModel):
    """Published StreamOptions."""

    include_usage: Flag | None = None


class StreamedBody(BaseModel):
    """Whether an answer is streamed, and whether its stream ends with its usage."""

    stream: Flag | None = None
    stream_options: StreamOptions | None = None

    @property
    def wants_usage(self) -> bool:
        """Whether usage is sent as the last event."""
        return bool(self.stream_options is not None and self.stream_options.include_usage)


class SampledBody(BaseModel):
    """How tokens are sampled, and where an answer ends; null means "not sent", unknown fields are ignored."""

    temperature: Annotated[Number, Field(ge=0, le=2)] | None = None
    top_p: Annotated[Number, Field(ge=0, le=1)] | None = None
    top_k: Annotated[Integer, Field(ge=-1, le=MAX_TOP_K)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    stop: Stops | None = None
    repetition_penalty: Annotated[Number, Field(gt=0)] | None = None
    seed: Annotated[Integer, Field(ge=0, lt=2**63)] | None = None

    def sampling(self) -> SamplingParams:
        """What was not sent has no effect, nor has a zero that clients use for "none"."""
        # The published range of top_p includes 0, where the smallest set of tokens is the most probable one.
        greedy = self.top_p == 0
        return SamplingParams(
            temperature=0.0 if greedy else self.temperature or 0.0,
            top_p=1.0 if greedy or self.top_p is None else self.top_p,
            top_k=self.top_k or -1,
            frequency_penalty=self.frequency_penalty or 0.0,
            presence_penalty=self.presence_penalty or 0.0,
            repetition_penalty=min(_HIGHEST_PENALTY, max(_LOWEST_PENALTY, self.repetition_penalty or 1.0)),
            seed=self.seed,
        )


class PublishedBody(SampledBody, StreamedBody):
    """What clients of the published routes and of OpenAI send."""


class JsonSchemaFormat(BaseModel):
    """Published JSONSchema. The schema is enforced whether it is `strict` or not."""

    model_config = ConfigDict(populate_by_name=True)

    name: Name | None = None
    description: Text | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: Flag | None = None


class ResponseFormat(BaseModel):
    """Published ResponseFormatText, -JSONObject and -JSONSchema; and `regex`, as other open servers have it."""

    type: Literal["text", "json_object", "json_schema", "regex"]
    json_schema: JsonSchemaFormat | None = None
    pattern: Annotated[Text, Field(min_length=1, max_length=MAX_PATTERN_CHARACTERS)] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.type == "json_schema" and self.json_schema is None:
            raise ValueError("json_schema is missing")
        if self.type == "regex" and self.pattern is None:
            raise ValueError("pattern is missing")
        return self

    def schema_of(self) -> dict[str, Any] | None:
        """The schema of the requested JSON; None when it is not JSON."""
        if self.type == "json_schema" and self.json_schema is not None:
            return {"type": "object"} if self.json_schema.schema_ is None else self.json_schema.schema_
        return {"type": "object"} if self.type == "json_object" else None

    def pattern_of(self) -> str | None:
        """The requested pattern."""
        return self.pattern if self.type == "regex" else None


def unset() -> Any:
    """A field that is left out of an answer while it has no value."""
    return Field(default=None, exclude_if=lambda value: value is None)


class CompletionTokensDetails(BaseModel):
    """Newer form of `reasoning_tokens`."""

    reasoning_tokens: int


class PromptTokensDetails(BaseModel):
    """Newer form of `cached_input_tokens`."""

    cached_tokens: int


class Usage(BaseModel):
    """Token counts, in the flat form of the document and in the nested form of the newer clients.

    `estimated`: the server with the model did not count the prompt's.
    """

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    reasoning_tokens: int
    cached_input_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails
    estimated: bool | None = unset()

    @classmethod
    def count(cls, prompt: int, completion: int, cached: int, reasoning: int = 0, *, estimated: bool = False) -> Usage:
        """Usage of one request, in tokens; `cached` of `prompt` came from the prefix cache."""
        return cls(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=prompt + completion,
            reasoning_tokens=reasoning,
            cached_input_tokens=cached,
            prompt_tokens_details=PromptTokensDetails(cached_tokens=cached),
            completion_tokens_details=CompletionTokensDetails(reasoning_tokens=reasoning),
            estimated=estimated or None,
        )


class Canvas(BaseModel):
    """One canvas state, token by token.

    Attributes:
        step: forward passes of this answer so far.
        pieces: the tokens' texts; a light shade (U+2591) for one that is not known yet.
        revealed: per token, whether it is final.
    """

    step: int
    pieces: list[str]
    revealed: list[bool]

    @classmethod
    def of(cls, canvas: CanvasText) -> Canvas:
        """A state as the model reports it."""
        return cls(step=canvas.step, pieces=list(canvas.pieces), revealed=list(canvas.revealed))


Choice = TypeVar("Choice", bound=BaseModel)


class Chunk(BaseModel, Generic[Choice]):
    """The shape of a part of a streamed answer.

    Attributes:
        usage: in the last part, which has no choices, if it was requested.
        calomel: in a stream of canvases: their tokens. The choice has all text so far, not what is new.
    """

    id: str
    object: str
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | None = unset()
    calomel: Canvas | None = unset()


class Completion(BaseModel, Generic[Choice]):
    """The shape of a whole answer."""

    id: str
    object: str
    created: int
    model: str
    choices: list[Choice]
    usage: Usage
    warning: str | None = None


class Pricing(BaseModel):
    """Published PricingInfo, per token. Your own machine charges nothing."""

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
    supported_endpoints: list[str]


class ErrorObject(BaseModel):
    """Published ErrorObject."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorResponse(BaseModel):
    """Published ErrorResponse."""

    error: ErrorObject
