"""The routes under the names by which clients call them that join a base and a path as they see fit.

One gateway has its own; a base without its last slash loses its last part, or grows together with what follows it; some
clients want their own maker's path, or none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fastapi import Depends

from calomel.server.access import protected_router
from calomel.server.media import require_json
from calomel.server.routes.apply import create_apply_completion
from calomel.server.routes.chat import create_chat_completion
from calomel.server.routes.completions import create_completion
from calomel.server.routes.edit import create_edit_completion
from calomel.server.routes.fim import create_fim_completion
from calomel.server.routes.llamacpp import infill
from calomel.server.schemas.edit import EditCompletion
from calomel.server.schemas.errors import ErrorResponse
from calomel.server.schemas.fim import FimCompletion

router = protected_router(
    dependencies=[Depends(require_json)], responses={"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}}
)
_POST: Final = ["POST"]
router.add_api_route("/api/fim/completions", create_fim_completion, methods=_POST, response_model=FimCompletion)
router.add_api_route("/api/edit/completions", create_edit_completion, methods=_POST, response_model=EditCompletion)
_JOINED: Final[dict[str, Callable[..., Any]]] = {
    "completions": create_completion,
    "fim/completions": create_fim_completion,
    "edit/completions": create_edit_completion,
    "chat/completions": create_chat_completion,
    "apply/completions": create_apply_completion,
}
_OTHERS: Final[dict[str, Callable[..., Any]]] = {
    "/beta/completions": create_completion,  # DeepSeek's
    "/v1/beta/completions": create_completion,
    "/completion": infill,  # llama.cpp's, with the tokens of a model in its prompt
}
for _path, _endpoint in [(f"{base}{path}", each) for path, each in _JOINED.items() for base in ("/", "/v1")]:
    router.add_api_route(_path, _endpoint, methods=_POST, response_model=None, include_in_schema=False)
for _path, _endpoint in _OTHERS.items():
    router.add_api_route(_path, _endpoint, methods=_POST, response_model=None, include_in_schema=False)
