"""GET /health: whether the model is there. The one route without a token; it says nothing else."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import JSONResponse, Response

from calomel.server.access import public_router
from calomel.server.door import door_of
from calomel.server.errors import DoorError, DrainingError
from calomel.suggest.process import DEAD_THREADS

router = public_router()


@router.get("/health", responses={503: {"description": "The model is loading or failed, or the server is ending."}})
async def health(request: Request) -> Response:
    """200 `{"status": "ok"}` when fills are served; else 503 with `status` "loading", "failed" or "draining".

    "degraded" in the place of "ok" when a part of the server has ended with an error; `/calomel/v1/status` says which.
    A model whose memory was given back counts as there: the next request opens it.
    """
    door = door_of(request)
    try:
        if door.admission.draining:
            raise DrainingError
        if door.loader.state != "unloaded":
            door.loader.filler()
    except DoorError as error:
        status = "draining" if isinstance(error, DrainingError) else door.loader.state
        answer = error.response()
        return JSONResponse({"status": status, **error.body()}, answer.status_code, _retry_after(answer))
    return JSONResponse({"status": "degraded" if DEAD_THREADS.seen else "ok"})


def _retry_after(answer: Response) -> dict[str, str]:
    value = answer.headers.get("retry-after")
    return {} if value is None else {"retry-after": value}
