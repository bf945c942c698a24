"""POST /v1/edit/completions: what the region that a client shows becomes; unchanged when nothing is sure enough."""

from __future__ import annotations

from typing import Final

from fastapi import Depends, Request
from starlette.responses import JSONResponse, Response

from calomel.prompts.foreign.errors import ForeignPromptError
from calomel.prompts.foreign.mercury import mercury_answer, parse_mercury
from calomel.server.access import protected_router
from calomel.server.deliveries import Delivered
from calomel.server.door import Visit, visit
from calomel.server.errors import InvalidParameterError
from calomel.server.media import require_json
from calomel.server.metrics import Spent
from calomel.server.schemas.base import Usage
from calomel.server.schemas.edit import (
    AssistantMessage,
    EditChoice,
    EditCompletion,
    EditRequest,
)
from calomel.server.schemas.errors import ErrorResponse
from calomel.server.sessions import client_of
from calomel.server.whole import whole
from calomel.suggest.outcome_signals import signals_of
from calomel.suggest.stateless.room import RegionAnswer, language_of

_SHOWN: Final = "shown"

router = protected_router(dependencies=[Depends(require_json)])


@router.post(
    "/v1/edit/completions",
    response_model=EditCompletion,
    responses={"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}},
)
async def create_edit_completion(body: EditRequest, request: Request) -> Response:
    """Rewrite the region between the tags; with `stream`, as server-sent events."""
    try:
        prompt = parse_mercury(body.messages[0].content)
    except ForeignPromptError as error:
        raise InvalidParameterError(str(error), "messages") from None
    async with visit(request, "edit") as visiting:
        known = visiting.door.workspace
        shown = prompt if known is None else await visiting.run(known.edit(prompt))
        answer = await visiting.run(
            visiting.door.edits.rewrite(visiting.filler, visiting.info, shown, client=client_of(request))
        )
        usage = decided(visiting, answer, prompt.path)
        content = mercury_answer(answer.text)
        if body.stream:
            return visiting.stream(whole(visiting, body, content, usage))
        return _plain(visiting, body, content, usage)


def decided(visiting: Visit, answer: RegionAnswer, path: str | None) -> Usage:
    """Count an answer, and remember what is offered for feedback. Every route that answers edits calls it."""
    work = answer.work
    verdict = _SHOWN if answer.reason is None else str(answer.reason)
    visiting.answered(
        Spent(work.context_tokens, work.cached_tokens, work.answer_tokens, work.steps, work.seconds, verdict)
    )
    visiting.door.metrics.judged(verdict)
    if answer.found:
        best = answer.found[0]
        delivered = Delivered(
            kind=best.signals.kind,
            model=visiting.info.id,
            probability=best.probability,
            text="".join(edit.text for edit in answer.edits),
            language_id=language_of(path),
            maker=best.maker,
            signals=signals_of(best.candidate, best.edits, best.signals),
        )
        visiting.door.deliveries.remember(visiting.id, delivered)
    return Usage.count(work.context_tokens, work.answer_tokens, work.cached_tokens)


def _plain(visiting: Visit, body: EditRequest, content: str, usage: Usage) -> Response:
    answer = EditCompletion(
        id=visiting.id,
        created=visiting.created,
        model=body.model,
        choices=[EditChoice(message=AssistantMessage(content=content), finish_reason="stop")],
        usage=usage,
    )
    return JSONResponse(answer.model_dump())
