"""POST /calomel/v1/complete and GET /calomel/v1/info: what Calomel's editor side speaks (`calomel.suggest.wire`)."""

from __future__ import annotations

import logging

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from calomel.server.admission import Admission
from calomel.server.disconnect import until_disconnect
from calomel.server.errors import InvalidParameterError, from_engine
from calomel.server.loading import ModelLoader
from calomel.server.routes_fim import require_json
from calomel.server.schemas import ErrorResponse
from calomel.suggest.completer import CompleteAnswer, ModelInfo
from calomel.suggest.fields import FieldError
from calomel.suggest.in_process import answer
from calomel.suggest.wire import COMPLETE_PATH, INFO_PATH, decode_request, encode_answer, encode_info

_log = logging.getLogger("calomel.server")
_JSON = "application/json"

router = APIRouter(responses={"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}})


@router.get(INFO_PATH, response_class=Response)
async def model_info(request: Request) -> Response:
    """What the loaded model can do; 503 `model_loading` until it is loaded."""
    loader: ModelLoader = request.app.state.loader
    loader.filler()
    return Response(encode_info(loader.info()), media_type=_JSON)


@router.post(COMPLETE_PATH, response_class=Response, dependencies=[Depends(require_json)])
async def complete(request: Request) -> Response:
    """Candidates with the engine's signals; closing the connection cancels the work behind it."""
    loader: ModelLoader = request.app.state.loader
    admission: Admission = request.app.state.admission
    filler = loader.filler()
    info = loader.info()
    try:
        wanted = decode_request(await request.body())
    except FieldError as error:
        raise InvalidParameterError(str(error), error.field or None) from None
    with admission.place():
        try:
            found = await until_disconnect(request, answer(filler, info, wanted))
        except Exception as error:
            refusal = from_engine(error)
            if refusal is None:
                raise
            raise refusal from error
    _log_answer(info, found)
    return Response(encode_answer(found), media_type=_JSON)


def _log_answer(info: ModelInfo, found: CompleteAnswer) -> None:
    first = found.candidates[0] if found.candidates else None
    _log.info(
        "complete %s: context=%d cached=%d tokens=%d steps=%d ms=%.0f %s",
        info.id,
        found.context_tokens,
        found.cached_tokens,
        0 if first is None else len(first.log_probs),
        0 if first is None else first.steps,
        found.timings.total * 1000,
        found.reason or "",
    )
