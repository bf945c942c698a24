"""The routes of llama.cpp's server and of Ollama, for editor plugins that use those.

POST /infill, and POST /api/generate, GET /api/tags and /api/version.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field
from starlette.responses import JSONResponse, Response

from calomel.engine import DeadlineExceededError
from calomel.infer.cleaning import Cleaning
from calomel.infer.completer import CompleterError, FillRequest, version
from calomel.prompts.fim_tokens import parse_fim
from calomel.prompts.parts import Excerpt, PromptParts
from calomel.server.answers import Ended, answered, completed, fill_of, filled, known
from calomel.server.app_state import AnswerFormat, RequestContext, app_state_of, request_context
from calomel.server.middleware import protected_router
from calomel.server.wire import MAX_TOKENS, MOST_ASKED, Flag, Integer, Name, Number, SampledBody, Text, Usage

# The default of the plugins, and Ollama's own before it had none.
DEFAULT_TOKENS: Final = 128
# The plugins send 16 by default, and their manual goes up to 64.
_MOST_EXTRAS: Final = 1024
_MOST_FIELDS: Final = 64
_HOUR: Final = 3_600_000
_MOST_INDENT: Final = 1000

router = protected_router()


def _no_seed(value: int) -> int | None:
    return None if value < 0 else value


class LlamaBody(SampledBody):
    """How tokens are sampled, in the terms of llama.cpp and Ollama: zero and negative numbers may mean none."""

    repetition_penalty: Annotated[Number, Field(ge=0)] | None = Field(default=None, alias="repeat_penalty")
    seed: Annotated[Integer, Field(ge=-(2**63), lt=2**63), AfterValidator(_no_seed)] | None = None


class Extra(BaseModel):
    """A piece of another file, or of this one."""

    filename: Annotated[Text, Field(max_length=4096)] | None = None
    text: Text


class InfillRequest(LlamaBody):
    """Lines before the cursor's, the start of its line (`prompt`), and the text after it; null means "not sent".

    With `n_predict` 0 the answer is empty: the plugins use that to warm a cache. `t_max_predict_ms` bounds the time for
    the answer; `n_indent` ends it before a line that is indented less, except in a stream.
    """

    input_prefix: Text | None = None
    input_suffix: Text | None = None
    input_extra: Annotated[list[Extra], Field(max_length=_MOST_EXTRAS)] | None = None
    prompt: Text | None = None
    n_predict: Annotated[Integer, Field(ge=-1, le=MOST_ASKED)] | None = None
    n_indent: Annotated[Integer, Field(ge=0, le=_MOST_INDENT)] | None = None
    t_max_predict_ms: Annotated[Number, Field(ge=-1, le=_HOUR)] | None = None
    stream: Flag | None = None
    response_fields: Annotated[list[Annotated[Text, Field(max_length=256)]], Field(max_length=_MOST_FIELDS)] | None = (
        None
    )


class Timings(BaseModel):
    """What the plugins show: tokens, milliseconds, tokens per second."""

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

    Every field has a default: with `response_fields` only the fields that the client names are sent.
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


# A plugin's limit is for the answer only; ours starts with the request, so the context gets extra time.
_CONTEXT_SECONDS: Final = 2.0
_TAB: Final = 4


@router.post("/infill", response_model=InfillResponse)
async def infill(body: InfillRequest, request: Request) -> Response:
    """Fill the hole after `input_prefix` and `prompt`; with `stream`, as server-sent events."""
    async with request_context(request, "infill") as context:
        answer = partial(_response, context.app_state.model.id)
        if body.n_predict == 0:
            return _fields(body, InfillResponse(content="", model=context.app_state.model.id, stop_type="limit"))
        wanted = await _fill_request(context, body)
        answer_format = AnswerFormat(answer, lambda text, _: InfillChunk(content=text), lambda end: [answer(end, "")])
        try:
            if body.stream:
                return await filled(context, answer_format, wanted, stream=True)
            fill = await context.fill(wanted)
        except (DeadlineExceededError, CompleterError) as error:
            if isinstance(error, CompleterError) and (error.code != "timeout" or wanted.deadline is None):
                raise
            # Not even the context was read in time: there is no answer, but that is no error of the plugin.
            nothing = Ended("", Usage.count(0, 0, 0), "length")
            if body.stream:
                return known(context, answer_format, nothing, (), stream=True)
            return _fields(body, answer(nothing))
        ending, text = answered(context, fill), indented(fill.text, body.n_indent or 0)
        if text != fill.text:
            text, _ = await asyncio.to_thread(Cleaning(wanted).whole, text)
        return _fields(body, answer(ending, text))


def indented(text: str, least: int) -> str:
    """`text` up to the first line after its own first that is not blank and indented by less than `least` columns."""
    lines = text.split("\n")
    for at, line in enumerate(lines[1:], 1):
        indent = len(line.expandtabs(_TAB)) - len(line.expandtabs(_TAB).lstrip())
        if line.strip() and indent < least:
            return "\n".join(lines[:at])
    return text


async def _fill_request(context: RequestContext, body: InfillRequest) -> FillRequest:
    extras = (Excerpt(each.filename or "", 0, each.text) for each in body.input_extra or ())
    if body.input_prefix is None and body.input_suffix is None:
        hole = await asyncio.to_thread(
            parse_fim, body.prompt or "", None
        )  # the prompt of `/completion` contains tokens
    else:
        hole = PromptParts(prefix=(body.input_prefix or "") + (body.prompt or ""), suffix=body.input_suffix or "")
    hole = replace(hole, related=(*hole.related, *(extra for extra in extras if extra.text.strip())))
    limit = body.t_max_predict_ms or 0
    fill_request = FillRequest(
        "fill",
        PromptParts(),
        max_tokens=_most(body.n_predict),
        stop=tuple(body.stop or ()),
        sampling=body.sampling(),
        deadline=_CONTEXT_SECONDS + limit / 1000 if limit > 0 else None,
    )
    return fill_of(context, hole, fill_request)


def _response(model: str, ending: Ended, text: str | None = None) -> InfillResponse:
    """`text` replaces all that was generated."""
    cached, made = ending.usage.cached_input_tokens, ending.usage.completion_tokens
    read = ending.usage.prompt_tokens - cached
    return InfillResponse(
        content=ending.text if text is None else text,
        model=model,
        tokens_predicted=made,
        tokens_evaluated=ending.usage.prompt_tokens,
        has_new_line="\n" in ending.text,
        truncated=ending.warning is not None,
        stop_type="eos" if ending.finish == "stop" else "limit",
        tokens_cached=cached,
        timings=Timings(
            cache_n=cached, **_pace("prompt", read, ending.reading), **_pace("predicted", made, ending.making)
        ),
    )


def _pace(name: str, tokens: int, seconds: float) -> dict[str, Any]:
    return {
        f"{name}_n": tokens,
        f"{name}_ms": seconds * 1000,
        f"{name}_per_token_ms": seconds * 1000 / tokens if tokens else 0.0,
        f"{name}_per_second": tokens / seconds if seconds else 0.0,
    }


def _fields(body: InfillRequest, answer: InfillResponse) -> Response:
    """The answer, or only the fields that the plugin names: `timings/prompt_ms` is a nested one."""
    values: dict[str, Any] = answer.model_dump()
    if body.response_fields:
        values = {name: value for name in body.response_fields if (value := _field(values, name)) is not None}
    return JSONResponse(values)


def _field(values: Any, path: str) -> Any:
    for name in path.split("/"):
        if not isinstance(values, dict) or name not in values:
            return None
        values = values[name]
    return values


def _no_format(value: Any) -> Any:
    if value not in (None, ""):
        raise ValueError("Answers have no format here: remove it")
    return None


class Options(LlamaBody):
    """The Ollama options that have an effect here. A negative `num_predict` sets no bound of its own."""

    num_predict: Annotated[Integer, Field(ge=-2, le=MOST_ASKED)] | None = None


class GenerateRequest(BaseModel):
    """A prompt with or without `suffix`. Streamed unless `stream` is false: that is Ollama's default.

    There are no templates and no conversations here, so every prompt is treated as `raw`.
    """

    model: Name | None = None
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
    """What Ollama reports of a checkpoint."""

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
    """Response of `/api/tags`."""

    models: list[Tag]


class OllamaVersion(BaseModel):
    """Response of `/api/version`: Calomel's."""

    version: str


# A client that wants no bound gets the published default of the other routes.
UNBOUNDED_TOKENS: Final = 512
_SECOND: Final = 1_000_000_000


@router.get("/api/version")
async def ollama_version() -> OllamaVersion:
    """The version of Calomel."""
    return OllamaVersion(version=version())


@router.get("/api/tags")
async def ollama_tags(request: Request) -> Tags:
    """The model that answers, whatever a request names."""
    model = app_state_of(request).model
    changed = datetime.fromtimestamp(model.created, UTC).isoformat()
    return Tags(models=[Tag(name=model.id, model=model.id, modified_at=changed)])


@router.post("/api/generate", response_model=GenerateResponse)
async def ollama_generate(body: GenerateRequest, request: Request) -> Response:
    """Fill the hole, or rewrite one of Zed's regions; as lines of JSON unless `stream` is false."""
    prompt, options, stream = body.prompt or "", body.options or Options(), body.stream is not False
    if not prompt and not body.suffix:
        # This request only loads the model.
        async with request_context(request, "generate") as context:
            nothing = Ended("", Usage.count(0, 0, 0))
            return known(context, _wording(body, "load", context), nothing, [], stream=stream)

    def asked() -> FillRequest:
        stop = tuple(options.stop or ())
        return FillRequest(
            "fill", PromptParts(), max_tokens=_most(options.num_predict), stop=stop, sampling=options.sampling()
        )

    answer_format = partial(_wording, body, None)
    return await completed(request, "generate", prompt, body.suffix, options.stop, asked, answer_format, stream=stream)


def _wording(body: GenerateRequest, reason: Literal["load"] | None, context: RequestContext) -> AnswerFormat[Ended]:
    """Lines of JSON; `reason` replaces the text's own reason to end."""
    created = datetime.fromtimestamp(context.created, UTC).isoformat()
    head: dict[str, Any] = {"model": body.model or context.app_state.model.id, "created_at": created}

    def whole(ending: Ended) -> GenerateResponse:
        return GenerateResponse(
            **head,
            response=ending.text,
            done_reason=reason or ending.finish,
            total_duration=int(ending.seconds * _SECOND),
            prompt_eval_count=ending.usage.prompt_tokens,
            prompt_eval_duration=int(ending.reading * _SECOND),
            eval_count=ending.usage.completion_tokens,
            eval_duration=int(ending.making * _SECOND),
        )

    return AnswerFormat(
        whole,
        lambda text, _: GenerateChunk(**head, response=text),
        lambda ending: [whole(replace(ending, text=""))],
        frame=lambda data: data.model_dump_json().encode() + b"\n",
        media_type="application/x-ndjson",
    )


def _most(wanted: int | None) -> int:
    """The bound on an answer for a client's own, which is negative for none."""
    if wanted is None:
        return DEFAULT_TOKENS
    return min(wanted, MAX_TOKENS) if wanted > 0 else UNBOUNDED_TOKENS
