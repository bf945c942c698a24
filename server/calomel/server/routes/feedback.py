"""POST /feedback: what became of an answer. Without a token, as clients send it; only a known id has any effect."""

from __future__ import annotations

from typing import Final

from fastapi import Depends, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from calomel.server.access import public_router
from calomel.server.door import door_of
from calomel.server.media import require_json
from calomel.server.schemas.errors import ErrorResponse
from calomel.server.schemas.feedback import FeedbackAnswer, FeedbackRequest

# What everybody may send is read up to here.
_MOST_BYTES: Final = 64 * 1024
_TOO_LARGE: Final = 413

router = public_router(dependencies=[Depends(require_json)])


@router.post(
    "/feedback",
    responses={"4XX": {"model": ErrorResponse}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": FeedbackRequest.model_json_schema()}},
        }
    },
)
async def take_feedback(request: Request) -> FeedbackAnswer:
    """Note it. The answer does not tell whether the id is known."""
    try:
        feedback = FeedbackRequest.model_validate_json(await _body(request))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in found]) from None
    door_of(request).deliveries.decided(feedback.request_id, feedback.user_action, feedback.accepted_length or 0)
    return FeedbackAnswer()


async def _body(request: Request) -> bytes:
    """The body, read no further than it may be long."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise HTTPException(_TOO_LARGE)
    return bytes(body)
