"""What several routes share: filling a hole, or rewriting one of Zed's regions, as a foreign client shows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from calomel.infer.completer import CanvasText, Fill, FillRequest
from calomel.prompts.edit_prompt import EditPrompt, ForeignPromptError
from calomel.prompts.fim_tokens import parse_fim
from calomel.prompts.parts import Excerpt, PromptParts
from calomel.prompts.zeta import ZetaPrompt, is_zeta, parse_zeta, zeta_answer
from calomel.server.app_state import AnswerFormat, RequestContext, request_context, while_there
from calomel.server.errors import InvalidParameterError
from calomel.server.metrics import Spent
from calomel.server.wire import Chunk, Completion, OpenAIFinishReason, Usage
from calomel.suggest.candidates import context_tokens
from calomel.suggest.silence import SilenceReason
from calomel.suggest.stateless import RegionAnswer, language_of, names_no_secret

# The published default.
DEFAULT_MAX_TOKENS: Final = 512
# Clients of OpenAI's API read this as the end of a stream.
DONE: Final = b"data: [DONE]\n\n"
TRIMMED: Final = "The prompt was too long, so the model did not see its beginning."

# No token of source code is nearly this long on average: no model reads text farther from a hole.
_CHARACTERS_PER_TOKEN: Final = 16
# Characters. The cut moves in steps, so that the cached start of a prompt stays the same while the user types; a
# multiple of the steps of `calomel.prompts.own`.
_STEP: Final = 64_512


def nearest(prefix: str, suffix: str, tokens: int) -> tuple[str, str]:
    """The text near a hole: all that a model with room for this many tokens can read.

    Looking for secrets, for text that occurs elsewhere and for brackets in megabytes takes seconds.
    """
    room = tokens * _CHARACTERS_PER_TOKEN
    before, behind = (max(0, len(text) - room) // _STEP * _STEP for text in (prefix, suffix))
    return prefix[before:], suffix[: len(suffix) - behind]


def fill_of(context: RequestContext, shown: PromptParts, request: FillRequest) -> FillRequest:
    """The request for a hole as a client shows it, without files that hold secrets by their names."""
    most = context_tokens(context.info, context.app_state.settings.context_tokens, request.max_tokens)
    prefix, suffix = nearest(shown.prefix, shown.suffix, most)
    beside = _readable((each for each in shown.related if names_no_secret(each.path)), most * _CHARACTERS_PER_TOKEN)
    parts = PromptParts(related=tuple(beside), path=shown.path, prefix=prefix, suffix=suffix)
    return replace(request, parts=parts, max_context=most, fitted=True)


def _readable(excerpts: Iterable[Excerpt], room: int) -> list[Excerpt]:
    """Excerpts of so many characters, of which a model reads the last ones first; the first of them may be cut."""
    kept: list[Excerpt] = []
    for excerpt in reversed([*excerpts]):
        if room <= 0:
            break
        kept.insert(0, replace(excerpt, text=excerpt.text[:room]))
        room -= len(excerpt.text)
    return kept


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a request.

    Attributes:
        text: all of it.
        finish: published reasons only: an answer cut short by time is as incomplete as one cut short by length.
        warning: for the client.
        seconds: from the request to the answer; `reading` of them for the context, `making` for the text.
    """

    text: str
    usage: Usage
    finish: OpenAIFinishReason = "stop"
    warning: str | None = None
    seconds: float = 0.0
    reading: float = 0.0
    making: float = 0.0


def published(
    head: Mapping[str, Any],
    answer: type[Completion[Any]],
    choice: Callable[[str, OpenAIFinishReason], BaseModel],
    chunk: type[Chunk[Any]],
    delta: Callable[[str, OpenAIFinishReason | None], BaseModel],
    *,
    usage: bool,
    canvases: bool = False,
) -> AnswerFormat[Ended]:
    """Answers in the form of the published routes and of OpenAI.

    Args:
        head: fields of every body.
        answer: the body of a whole answer.
        choice: in it.
        chunk: the body of a part of an answer.
        delta: in it; the last one has a finish reason.
        usage: a stream ends with its token usage.
        canvases: a stream has canvases: each replaces the one before, so the last has all of the answer.
    """

    def whole(ending: Ended) -> BaseModel:
        choices = [choice(ending.text, ending.finish)]
        return answer(**head, choices=choices, usage=ending.usage, warning=ending.warning)

    def last(ending: Ended) -> Iterable[BaseModel]:
        yield chunk(**head, choices=[delta(ending.text if canvases else "", ending.finish)])
        if usage:
            yield chunk(**head, choices=[], usage=ending.usage)

    return AnswerFormat(
        whole, lambda text, canvas: chunk(**head, choices=[delta(text, None)], calomel=canvas), last, done=DONE
    )


async def filled(
    context: RequestContext,
    answer_format: AnswerFormat[Ended],
    wanted: FillRequest,
    *,
    stream: bool | None,
    canvases: bool | None = False,
) -> Response:
    """Fill a hole and answer with it, whole or streamed."""
    if not stream:
        return context.whole(answer_format.whole(answered(context, await context.fill(wanted))))
    items: AsyncGenerator[str | CanvasText | Fill]
    items = context.filler.canvases(wanted) if canvases else context.filler.stream(wanted)
    return context.stream(answer_format, _counted(context, await context.begun(items)))


async def _counted(
    context: RequestContext, items: AsyncIterator[str | CanvasText | Fill]
) -> AsyncIterator[str | CanvasText | Ended]:
    async for item in items:
        if not isinstance(item, str | CanvasText):
            yield answered(context, item)
        elif item:
            yield item


def known(
    context: RequestContext,
    answer_format: AnswerFormat[Ended],
    ending: Ended,
    parts: Iterable[str],
    *,
    stream: bool | None,
) -> Response:
    """Answer with a finished result, whole, or as these parts of it and its end."""

    async def items() -> AsyncIterator[str | CanvasText | Ended]:
        for part in parts:
            yield part
        yield ending

    return context.stream(answer_format, items()) if stream else context.whole(answer_format.whole(ending))


def answered(context: RequestContext, fill: Fill) -> Ended:
    """Count a fill, and remember it for feedback."""
    context.answered(Spent.of(fill))
    context.app_state.deliveries.remember(context.id, "fill", context.info.id, fill.confidence, fill.text)
    return Ended(
        text=fill.text,
        usage=Usage.count(fill.prompt_tokens, fill.completion_tokens, fill.cached_tokens, estimated=fill.estimated),
        finish="stop" if fill.finish_reason == "stop" else "length",
        warning=TRIMMED if fill.trimmed else None,
        seconds=fill.seconds,
        reading=fill.result.prefill_seconds,
        making=fill.result.denoise_seconds,
    )


async def rewritten(context: RequestContext, prompt: EditPrompt) -> RegionAnswer:
    """The rewritten region of a prompt."""
    work = context.app_state.edits.rewrite(context.filler.complete, context.info, prompt, client=context.client)
    return await while_there(context.request, work)


async def completed(
    request: Request,
    route: str,
    prompt: str,
    suffix: str | None,
    stop: Sequence[str] | None,
    request_of: Callable[[], FillRequest],
    answer_format: Callable[[RequestContext], AnswerFormat[Ended]],
    *,
    stream: bool | None,
) -> Response:
    """Fill the hole of a prompt in any known format, or rewrite the region of one of Zed's.

    Raises:
        ApiError: the prompt is malformed, there is no place, no model, or the engine refused.
    """
    if not is_zeta(prompt) or suffix:
        async with request_context(request, route) as context:
            hole = await asyncio.to_thread(parse_fim, prompt, suffix)
            wanted = fill_of(context, hole, request_of())
            return await filled(context, answer_format(context), wanted, stream=stream)
    try:
        zeta = await asyncio.to_thread(parse_zeta, prompt)
    except ForeignPromptError as error:
        raise InvalidParameterError(str(error), "prompt") from None
    async with request_context(request, "zeta") as context:
        ending = await _zed_answer(context, zeta, stop or ())
        return known(context, answer_format(context), ending, [ending.text] if ending.text else [], stream=stream)


async def _zed_answer(context: RequestContext, zeta: ZetaPrompt, stop: Sequence[str]) -> Ended:
    answer = await rewritten(context, zeta.edit)
    silent = zeta_answer(zeta, None, stop)
    text = silent if answer.reason else zeta_answer(zeta, answer.text, stop)
    if text == silent and not answer.reason:
        # The text contains words of the format, so the editor would misread it.
        answer = replace(answer, text=zeta.edit.region, decisions=(), edits=(), reason=SilenceReason.PROMPT_MARKER)
    return Ended(text, decided(context, answer, zeta.edit.path))


def decided(context: RequestContext, answer: RegionAnswer, path: str | None) -> Usage:
    """Count an answer, and remember what it offers for feedback. Every route that answers edits calls it."""
    work = answer.work
    verdict = "shown" if answer.reason is None else str(answer.reason)
    context.answered(
        Spent(work.context_tokens, work.cached_tokens, work.answer_tokens, work.steps, work.seconds, verdict)
    )
    context.app_state.metrics.verdicts[verdict] += 1
    if answer.decisions:
        best = answer.decisions[0]
        context.app_state.deliveries.remember(
            context.id,
            best.kind,
            context.info.id,
            best.probability,
            "".join(edit.text for edit in answer.edits),
            language_id=language_of(path),
            maker=best.maker,
            signals=best.signals,
        )
    return Usage.count(work.context_tokens, work.answer_tokens, work.cached_tokens)
