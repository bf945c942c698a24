"""POST /calomel/v1/complete and GET /calomel/v1/info: what Calomel's editor side speaks (`calomel.infer.wire`)."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from calomel.infer.in_process import answer
from calomel.infer.wire import COMPLETE_PATH, INFO_PATH, FieldError, decode_request, encode
from calomel.server.app_state import app_state_of, request_context, while_there
from calomel.server.errors import InvalidParameterError
from calomel.server.metrics import Spent
from calomel.server.middleware import protected_router

_JSON = "application/json"

router = protected_router()


@router.get(INFO_PATH, response_class=Response)
async def model_info(request: Request) -> Response:
    """What the loaded model can do; 503 `model_loading` until it is loaded."""
    return Response(encode(app_state_of(request).loader.info()), media_type=_JSON)


@router.post(COMPLETE_PATH, response_class=Response)
async def complete(request: Request) -> Response:
    """Candidates with the engine's signals; closing the connection cancels the work behind it."""
    try:
        wanted = decode_request(await request.body())
    except FieldError as error:
        raise InvalidParameterError(str(error), error.field or None) from None
    async with request_context(request, "complete") as context:
        # Asks `Filler.complete` (`calomel.infer.filler`).
        result = await while_there(request, answer(context.filler.complete, context.info, wanted))
        first = result.candidates[0] if result.candidates else None
        context.answered(
            Spent(
                prompt_tokens=result.context_tokens,
                cached_tokens=result.cached_tokens,
                completion_tokens=0 if first is None else len(first.log_probs),
                steps=0 if first is None else first.steps,
                seconds=result.timings.total,
                finish=result.reason or ("stop" if first is None else first.finish_reason),
            )
        )
        return Response(encode(result), media_type=_JSON)
