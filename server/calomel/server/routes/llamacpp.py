"""POST /infill, for editor plugins that speak to llama.cpp's server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response

from calomel.prompts.fim_tokens import parse_fim
from calomel.prompts.parts import Excerpt, PromptParts
from calomel.server.access import protected_router
from calomel.server.answers import Ended, answered, fill_of, filled
from calomel.server.door import Visit, Wording, visit
from calomel.server.wire import MAX_TOKENS, MOST_ASKED, Flag, Integer, LlamaSampledBody, Number, Text

if TYPE_CHECKING:
    from calomel.suggest.completer import FillRequest


# The plugins send 16 by default, and 64 where their manual goes far.
_MOST_EXTRAS: Final = 1024
_MOST_FIELDS: Final = 64
_HOUR: Final = 3_600_000
_MOST_INDENT: Final = 1000


class Extra(BaseModel):
    """A piece of another file, or of this one."""

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
    n_predict: Annotated[Integer, Field(ge=-1, le=MOST_ASKED)] | None = None
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


# The plugins' own.
DEFAULT_TOKENS: Final = 128
# A plugin's limit is for the answer alone; ours is from the request on, so the context has its own time.
_CONTEXT_SECONDS: Final = 2.0
_TAB: Final = 4

router = protected_router()


@router.post("/infill", response_model=InfillResponse)
async def infill(body: InfillRequest, request: Request) -> Response:
    """Fill the hole behind `input_prefix` and `prompt`; with `stream`, as server-sent events."""
    async with visit(request, "infill") as visiting:
        answer = partial(_response, visiting.door.model.id)
        if body.n_predict == 0:
            return _fields(body, InfillResponse(content="", model=visiting.door.model.id, stop_type="limit"))
        wanted = await _fill_request(visiting, body)
        if body.stream:
            wording = Wording(answer, lambda text, _: InfillChunk(content=text), lambda end: [answer(end, "")])
            return await filled(visiting, wording, wanted, stream=True)
        try:
            fill = await visiting.fill(wanted)
        except Exception as error:
            if getattr(error, "code", None) != "deadline_exceeded":
                raise
            # Not even the context was read in time: there is no answer, which is no mistake of the plugin's.
            return _fields(body, InfillResponse(content="", model=visiting.door.model.id, stop_type="limit"))
        ending, text = answered(visiting, fill), indented(fill.text, body.n_indent or 0)
        if text != fill.text and wanted.hole is not None:
            text = await asyncio.to_thread(wanted.hole.fitted, text, truncated=False)
        return _fields(body, answer(ending, text))


def indented(text: str, least: int) -> str:
    """`text` up to the first line, of those behind its own first, that is not blank and indented by less."""
    lines = text.split("\n")
    for at, line in enumerate(lines[1:], 1):
        indent = len(line.expandtabs(_TAB)) - len(line.expandtabs(_TAB).lstrip())
        if line.strip() and indent < least:
            return "\n".join(lines[:at])
    return text


async def _fill_request(visiting: Visit, body: InfillRequest) -> FillRequest:
    extras = (Excerpt(each.filename or "", 0, each.text) for each in body.input_extra or ())
    if body.input_prefix is None and body.input_suffix is None:
        hole = parse_fim(body.prompt or "", None)  # `/completion` has tokens in its prompt
    else:
        hole = PromptParts(prefix=(body.input_prefix or "") + (body.prompt or ""), suffix=body.input_suffix or "")
    hole = replace(hole, related=(*hole.related, *(extra for extra in extras if extra.text.strip())))
    limit = body.t_max_predict_ms or 0
    return await fill_of(
        visiting,
        hole,
        max_tokens=min(body.n_predict, MAX_TOKENS) if body.n_predict and body.n_predict > 0 else DEFAULT_TOKENS,
        stop=tuple(body.stop or ()),
        sampling=body.sampling(),
        deadline=_CONTEXT_SECONDS + limit / 1000 if limit > 0 else None,
    )


def _response(model: str, ending: Ended, text: str | None = None) -> InfillResponse:
    """`text` takes the place of all that was written."""
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
            cache_n=cached,
            prompt_n=read,
            prompt_ms=ending.reading * 1000,
            prompt_per_token_ms=ending.reading * 1000 / read if read else 0.0,
            prompt_per_second=read / ending.reading if ending.reading else 0.0,
            predicted_n=made,
            predicted_ms=ending.making * 1000,
            predicted_per_token_ms=ending.making * 1000 / made if made else 0.0,
            predicted_per_second=made / ending.making if ending.making else 0.0,
        ),
    )


def _fields(body: InfillRequest, answer: InfillResponse) -> Response:
    """The answer, or only those of its fields that the plugin names: `timings/prompt_ms` is one within another."""
    values: dict[str, Any] = answer.model_dump()
    if body.response_fields:
        values = {name: found for name in body.response_fields if (found := _field(values, name)) is not None}
    return JSONResponse(values)


def _field(values: Any, path: str) -> Any:
    for name in path.split("/"):
        if not isinstance(values, dict) or name not in values:
            return None
        values = values[name]
    return values
