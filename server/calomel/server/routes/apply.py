"""POST /v1/apply/completions: a snippet with markers for what stays, merged into the file it was written for."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from fastapi import Depends, Request
from starlette.responses import JSONResponse, Response

from calomel.server.access import protected_router
from calomel.server.door import Visit, visit
from calomel.server.errors import InvalidParameterError
from calomel.server.media import require_json
from calomel.server.metrics import Spent
from calomel.server.schemas.apply import ApplyCompletion, ApplyLastChunk, ApplyRequest
from calomel.server.schemas.base import Usage
from calomel.server.schemas.edit import (
    AssistantMessage,
    EditChoice,
)
from calomel.server.schemas.errors import ErrorResponse
from calomel.server.whole import whole
from calomel.suggest.apply.deciding import Decided, decide
from calomel.suggest.apply.merge import merge
from calomel.suggest.apply.prompt import ApplyPrompt, ApplyPromptError, parse_apply

_MERGES: Final = ThreadPoolExecutor(2, thread_name_prefix="calomel-merge")

router = protected_router(dependencies=[Depends(require_json)])


@router.post(
    "/v1/apply/completions",
    response_model=ApplyCompletion,
    responses={"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}},
)
async def create_apply_completion(body: ApplyRequest, request: Request) -> Response:
    """Merge the snippet; where that is not possible, answer the file as it was, with a warning."""
    try:
        prompt = await asyncio.to_thread(parse_apply, body.messages[0].content)
    except ApplyPromptError as error:
        raise InvalidParameterError(f"messages: {error}", "messages") from None
    async with visit(request, "apply") as visiting:
        decided = await visiting.run(_merged(visiting, prompt))
        usage = _usage(decided)
        if body.stream:
            return visiting.stream(whole(visiting, body, decided.text, usage, ApplyLastChunk, warning=decided.warning))
        return _plain(visiting, body, decided, usage)


async def _merged(visiting: Visit, prompt: ApplyPrompt) -> Decided:
    began = time.monotonic()
    # Seconds of work for the largest files: in a thread, so that the door answers others meanwhile; few at a time, so
    # that many of them leave the processor to the engine. What has not begun when its client goes away never does.
    merged = await visiting.prepare(_MERGES, merge, prompt.original, prompt.update)
    decided = await decide(
        visiting.filler, visiting.info, merged, prompt.original, prompt.update, mask=visiting.door.mask
    )
    prompt_tokens = sum(each.context_tokens for each in decided.answers)
    cached = sum(each.cached_tokens for each in decided.answers)
    visiting.answered(Spent(prompt_tokens, cached, seconds=time.monotonic() - began))
    return decided


def _usage(decided: Decided) -> Usage:
    """What the model read; nothing where it was not asked."""
    prompt = sum(each.context_tokens for each in decided.answers)
    return Usage.count(prompt, 0, sum(each.cached_tokens for each in decided.answers))


def _plain(visiting: Visit, body: ApplyRequest, decided: Decided, usage: Usage) -> Response:
    answer = ApplyCompletion(
        id=visiting.id,
        created=visiting.created,
        model=body.model,
        choices=[EditChoice(message=AssistantMessage(content=decided.text), finish_reason="stop")],
        usage=usage,
        warning=decided.warning,
    )
    return JSONResponse(answer.model_dump())
