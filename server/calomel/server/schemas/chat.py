"""Bodies of `/v1/chat/completions` (Chat of the OpenAPI document of 2026-07)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from calomel.server.schemas.base import (
    MAX_NAME_CHARACTERS,
    MAX_STOPS,
    MAX_TOP_K,
    Flag,
    Integer,
    Number,
    StopText,
    StreamOptions,
    Text,
    Usage,
    not_zero,
    one_or_many,
)
from calomel.server.schemas.fim import Canvas
from calomel.server.schemas.messages import text_of
from calomel.server.schemas.response_format import ResponseFormat

# Published.
MAX_CHAT_TOKENS: Final = 50_000
# Ours: far beyond what people write, small enough that a body of the largest size is read in no time.
MAX_MESSAGES: Final = 4_096
MAX_TOOLS: Final = 128
MAX_CALLS: Final = 128

FunctionName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
Name = Annotated[Text, Field(max_length=MAX_NAME_CHARACTERS)]
ChatFinishReason = Literal["stop", "length", "tool_calls"]

# What clients of other APIs say for our words.
_EFFORTS: Final = {"none": "instant", "minimal": "instant", "xhigh": "high", "max": "high"}
_ROLES: Final = {"developer": "system", "function": "tool"}


class CalledFunction(BaseModel):
    """Published FunctionCall; `arguments` is JSON in a text."""

    model_config = ConfigDict(extra="ignore")

    name: Name | None = None
    arguments: Text


class CallParam(BaseModel):
    """Published ToolCall, in a message of the conversation."""

    model_config = ConfigDict(extra="ignore")

    id: Name
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessageParam(BaseModel):
    """Published Message; `developer` is another word for `system`."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[Text, BeforeValidator(text_of)] | None = None
    name: Name | None = None
    tool_calls: Annotated[list[CallParam], Field(max_length=MAX_CALLS)] | None = None
    tool_call_id: Name | None = None

    @property
    def speaker(self) -> str:
        """The role in the words of templates."""
        return _ROLES.get(self.role, self.role)


class FunctionDefinition(BaseModel):
    """Published FunctionDefinition."""

    model_config = ConfigDict(extra="ignore")

    name: FunctionName
    description: Text | None = None
    parameters: dict[str, Any] | None = None
    strict: Flag | None = None


class ToolParam(BaseModel):
    """Published ChatCompletionTool."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["function"]
    function: FunctionDefinition


class NamedFunction(BaseModel):
    """The function that must be called."""

    model_config = ConfigDict(extra="ignore")

    name: FunctionName


class NamedTool(BaseModel):
    """A tool choice that names one."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["function"]
    function: NamedFunction


class ChatRequestBody(BaseModel):
    """Published ChatCompletionRequest, with the sampling fields of the other routes besides; null means "not sent"."""

    model_config = ConfigDict(extra="ignore")

    messages: Annotated[list[ChatMessageParam], Field(min_length=1, max_length=MAX_MESSAGES)]
    model: Annotated[Text, Field(min_length=1, max_length=MAX_NAME_CHARACTERS)]
    max_tokens: Annotated[Integer, Field(ge=1, le=MAX_CHAT_TOKENS)] | None = None
    max_completion_tokens: Annotated[Integer, Field(ge=1, le=MAX_CHAT_TOKENS)] | None = None
    # Outside of 0.5 to 1 it is replaced, and the answer says so.
    temperature: Annotated[Number, Field(ge=-1000, le=1000)] | None = None
    top_p: Annotated[Number, Field(ge=0, le=1)] | None = None
    top_k: Annotated[Integer, Field(ge=-1, le=MAX_TOP_K), AfterValidator(not_zero)] | None = None
    frequency_penalty: Annotated[Number, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[Number, Field(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[Number, Field(gt=0, le=1000)] | None = None
    seed: Annotated[Integer, Field(ge=0, lt=2**63)] | None = None
    n: Annotated[Integer, Field(ge=1, le=1)] | None = None
    stop: Annotated[list[StopText], BeforeValidator(one_or_many), Field(max_length=MAX_STOPS)] | None = None
    tools: Annotated[list[ToolParam], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: Literal["auto", "required", "none"] | NamedTool | None = None
    parallel_tool_calls: Flag | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: Literal["instant", "low", "medium", "high"] | None = None
    reasoning_summary: Flag | None = None
    reasoning_summary_wait: Flag | None = None
    realtime: Flag | None = None
    stream: Flag | None = None
    stream_options: StreamOptions | None = None
    diffusing: Flag | None = None

    @field_validator("reasoning_effort", mode="before")
    @classmethod
    def _effort(cls, value: Any) -> Any:
        return _EFFORTS.get(value, value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _callable(self) -> Self:
        names = {tool.function.name for tool in self.tools or ()}
        if len(names) < len(self.tools or ()):
            raise ValueError("two tools have the same name")
        if self.tool_choice == "required" and not names:
            raise ValueError("tool_choice asks for a call, but there are no tools")
        if isinstance(self.tool_choice, NamedTool) and self.tool_choice.function.name not in names:
            raise ValueError("tool_choice names a function that is not among the tools")
        return self


class ChatFunction(BaseModel):
    """Published FunctionCall, in an answer."""

    name: str
    arguments: str


class ChatCall(BaseModel):
    """Published ToolCall, in an answer."""

    index: int
    id: str
    type: Literal["function"] = "function"
    function: ChatFunction


class ChatMessage(BaseModel):
    """Published Message, in an answer: `tool_calls` is there because a client refuses null and its absence alike."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    tool_calls: list[ChatCall] = []


class ChatChoice(BaseModel):
    """Published Choice."""

    index: int = 0
    message: ChatMessage
    finish_reason: ChatFinishReason


class ReasoningSummary(BaseModel):
    """Published ReasoningSummary: what the model wrote before its answer; `unavailable` for models that do not."""

    content: str | None = None
    status: Literal["complete", "unavailable", "skipped"] = "unavailable"


class ChatCompletion(BaseModel):
    """Published ChatCompletionResponse."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    warning: str | None = None
    reasoning_summary: ReasoningSummary | None = None


class _Lean(BaseModel):
    """Sent without the fields that are not set."""

    @model_serializer(mode="wrap")
    def _set_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}


class ChatDelta(_Lean):
    """Published ChunkDelta: `content` is added to what came before; with `diffusing` it takes its place."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    tool_calls: list[ChatCall] | None = None


class ChatChunkChoice(BaseModel):
    """Published ChunkChoice."""

    index: int = 0
    delta: ChatDelta
    finish_reason: ChatFinishReason | None = None


class ChatChunk(_Lean):
    """Published ChatCompletionChunk; `usage` stands in the last one when it was asked for, which has no choices."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: Usage | None = None
    warning: str | None = None
    reasoning_summary: ReasoningSummary | None = None
    calomel: Canvas | None = None
