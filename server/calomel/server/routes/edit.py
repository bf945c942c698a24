"""POST /v1/edit/completions: what the region that a client shows becomes; unchanged when nothing is sure enough."""

from __future__ import annotations

from fastapi import Depends, Request
from starlette.responses import JSONResponse, Response

from calomel.prompts.edit_prompt import ForeignPromptError
from calomel.prompts.mercury import mercury_answer, parse_mercury
from calomel.server.access import protected_router
from calomel.server.door import Visit, visit
from calomel.server.errors import InvalidParameterError
from calomel.server.media import require_json
from calomel.server.rewrites import decided
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


def _plain(visiting: Visit, body: EditRequest, content: str, usage: Usage) -> Response:
    answer = EditCompletion(
        id=visiting.id,
        created=visiting.created,
        model=body.model,
        choices=[EditChoice(message=AssistantMessage(content=content), finish_reason="stop")],
        usage=usage,
    )
    return JSONResponse(answer.model_dump())
