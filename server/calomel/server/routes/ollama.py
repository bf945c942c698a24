"""POST /api/generate, GET /api/tags and /api/version, for clients that complete code as Ollama does."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, Field
from starlette.responses import Response

from calomel.prompts.fim_tokens import parse_fim
from calomel.prompts.zeta import is_zeta
from calomel.server.access import protected_router
from calomel.server.answers import Ended, fill_of, filled, known, zed_visit
from calomel.server.door import Visit, Wording, door_of, visit
from calomel.server.wire import MAX_TOKENS, MOST_ASKED, Flag, Integer, LlamaSampledBody, Name, Text, Usage
from calomel.suggest.launch import version


def _no_format(value: Any) -> Any:
    if value not in (None, ""):
        raise ValueError("Answers have no format here: leave it out")
    return None


class Options(LlamaSampledBody):
    """Those of Ollama's options that mean something here. A negative `num_predict` sets no bound of its own."""

    num_predict: Annotated[Integer, Field(ge=-2, le=MOST_ASKED)] | None = None


class GenerateRequest(BaseModel):
    """A prompt with or without `suffix`. It is streamed unless `stream` is false: that is Ollama's default.

    There are no templates and no conversations here, so every prompt is taken as `raw`.
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


# Ollama's own before it had none; a client that asks for no bound gets the published one of the other routes.
DEFAULT_TOKENS: Final = 128
UNBOUNDED_TOKENS: Final = 512
_SECOND: Final = 1_000_000_000

router = protected_router()


@router.get("/api/version")
async def ollama_version() -> OllamaVersion:
    """The version of Calomel."""
    return OllamaVersion(version=version())


@router.get("/api/tags")
async def ollama_tags(request: Request) -> Tags:
    """The model that answers, whatever a request names."""
    model = door_of(request).model
    changed = datetime.fromtimestamp(model.created, UTC).isoformat()
    return Tags(models=[Tag(name=model.id, model=model.id, modified_at=changed)])


@router.post("/api/generate", response_model=GenerateResponse)
async def ollama_generate(body: GenerateRequest, request: Request) -> Response:
    """Fill the hole, or rewrite one of Zed's regions; as lines of JSON unless `stream` is false."""
    prompt, options = body.prompt or "", body.options or Options()
    stream = body.stream is not False
    if is_zeta(prompt) and not body.suffix:
        async with zed_visit(request, prompt, options.stop or ()) as (visiting, ending):
            return known(visiting, _wording(visiting, body), ending, [ending.text], stream=stream)
    async with visit(request, "generate") as visiting:
        if not prompt and not body.suffix:
            # Asks for the model to be loaded, which it is by now.
            nothing = Ended("", Usage.count(0, 0, 0))
            return known(visiting, _wording(visiting, body, "load"), nothing, [], stream=stream)
        wanted = await fill_of(
            visiting,
            parse_fim(prompt, body.suffix),
            max_tokens=_most(options),
            stop=tuple(options.stop or ()),
            sampling=options.sampling(),
        )
        return await filled(visiting, _wording(visiting, body), wanted, stream=stream)


def _wording(visiting: Visit, body: GenerateRequest, reason: Literal["load"] | None = None) -> Wording[Ended]:
    """Lines of JSON; with a `reason` to end that is not the text's."""
    created = datetime.fromtimestamp(visiting.created, UTC).isoformat()
    head: dict[str, Any] = {"model": body.model or visiting.door.model.id, "created_at": created}

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

    return Wording(
        whole,
        lambda text, _: GenerateChunk(**head, response=text),
        lambda ending: [whole(replace(ending, text=""))],
        frame=lambda data: data.model_dump_json().encode() + b"\n",
        media_type="application/x-ndjson",
    )


def _most(options: Options) -> int:
    if options.num_predict is None:
        return DEFAULT_TOKENS
    return min(options.num_predict, MAX_TOKENS) if options.num_predict > 0 else UNBOUNDED_TOKENS
