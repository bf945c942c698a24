"""GET /health: whether the model is there. The one route without a token; it says nothing else."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import JSONResponse, Response

from calomel.server.access import public_router
from calomel.server.door import door_of
from calomel.server.errors import DoorError

router = public_router()


@router.get("/health", responses={503: {"description": "The model is loading, or could not be loaded."}})
async def health(request: Request) -> Response:
    """200 `{"status": "ok"}` when fills are served; 503 with `status` "loading" or "failed" before or instead."""
    loader = door_of(request).loader
    try:
        loader.filler()
    except DoorError as error:
        answer = error.response()
        return JSONResponse({"status": loader.state, **error.body()}, answer.status_code, _retry_after(answer))
    return JSONResponse({"status": "ok"})


def _retry_after(answer: Response) -> dict[str, str]:
    value = answer.headers.get("retry-after")
    return {} if value is None else {"retry-after": value}
