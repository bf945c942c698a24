"""The routes for holes and regions under the names by which one gateway's clients call them."""

from __future__ import annotations

from typing import Final

from fastapi import Depends

from calomel.server.access import protected_router
from calomel.server.media import require_json
from calomel.server.routes.edit import create_edit_completion
from calomel.server.routes.fim import create_fim_completion
from calomel.server.schemas.edit import EditCompletion
from calomel.server.schemas.errors import ErrorResponse
from calomel.server.schemas.fim import FimCompletion

router = protected_router(
    dependencies=[Depends(require_json)], responses={"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}}
)
_POST: Final = ["POST"]
router.add_api_route("/api/fim/completions", create_fim_completion, methods=_POST, response_model=FimCompletion)
router.add_api_route("/api/edit/completions", create_edit_completion, methods=_POST, response_model=EditCompletion)
