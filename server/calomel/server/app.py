"""The application: routes, and around them, from the outside in: CORS, errors, hosts, token and body size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import Response

from calomel.infer.completer import version
from calomel.infer.in_process import describe
from calomel.server.app_state import AppState, FillerFactory, InfoFactory, ModelLoader
from calomel.server.errors import ApiError, OriginError, StartError, response_to
from calomel.server.metrics import Deliveries, Metrics
from calomel.server.middleware import Admission, Boundary, Gate, protected_router, public_paths
from calomel.server.routes import chat, complete, completions, edit, llama, status
from calomel.server.settings import ServeSettings
from calomel.server.tokens import Tokens
from calomel.suggest.judging import SuggestionFilter
from calomel.suggest.outcome_log import OutcomeLog, outcome_log_path
from calomel.suggest.stateless import EditService

# Clients join a base URL and a path in different ways: a base without a trailing slash loses its last part, or merges
# with what follows; some clients expect the path of their own maker, or none.
_JOINED: Final[Mapping[str, Callable[..., Any]]] = {
    "completions": completions.create_completion,
    "fim/completions": completions.create_fim_completion,
    "edit/completions": edit.create_edit_completion,
    "chat/completions": chat.create_chat_completion,
    "apply/completions": edit.create_apply_completion,
}
_ALIASES: Final[Mapping[str, Callable[..., Any]]] = {
    **{f"{base}{path}": endpoint for path, endpoint in _JOINED.items() for base in ("/", "/v1")},
    "/beta/completions": completions.create_completion,  # DeepSeek's
    "/v1/beta/completions": completions.create_completion,
    "/completion": llama.infill,  # llama.cpp's, with a model's tokens in its prompt
}


class _Cors(CORSMiddleware):
    """Tells pages that are not allowed nothing, not even which methods there are."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """The answer to the question whether a page may ask."""
        allowed = self.is_allowed_origin(request_headers["origin"])
        return super().preflight_response(request_headers) if allowed else OriginError().response()


def _aliases() -> APIRouter:
    """The routes under other names."""
    router = protected_router()
    for path, endpoint in _ALIASES.items():
        router.add_api_route(path, endpoint, methods=["POST"], response_model=None, include_in_schema=False)
    return router


ROUTERS: Final = (
    complete.router,
    edit.router,
    status.models_router,
    status.health_router,
    completions.router,
    llama.router,
    _aliases(),
    chat.router,
    status.feedback_router,
    status.router,
)


def create_app(
    settings: ServeSettings,
    filler_factory: FillerFactory,
    tokens: Tokens | None = None,
    describing: InfoFactory | None = None,
) -> FastAPI:
    """The HTTP server of one model.

    Args:
        settings: with a token, unless `no_auth` is set.
        filler_factory: opens the model; called once, in a thread, when the application starts.
        tokens: the valid ones; None for the one in the settings. With `no_auth`, they only prove who listens.
        describing: describes the model; None for what its folder says.

    Raises:
        StartError: neither a token nor `no_auth` is set.
    """
    if tokens is None and not settings.no_auth:
        if settings.token is None:
            raise StartError("the server needs a token, or no-auth")
        tokens = Tokens({"": settings.token})

    in_folder, described = cache(lambda: describe(settings.model)), status.describe(settings.model)
    loader = ModelLoader(filler_factory, describing or in_folder)
    metrics = Metrics()
    admission = Admission(settings.max_requests, metrics, share=settings.client_share)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loader.start()
        try:
            yield
        finally:
            await asyncio.to_thread(loader.close)

    origins = [origin.lower() for origin in settings.allowed_origins]
    app = FastAPI(
        title="Calomel",
        lifespan=lifespan,
        # These pages load scripts from a content delivery network; this server contacts no other machine.
        docs_url=None,
        redoc_url=None,
        # A redirect would echo the Host header, and turn a POST without a slash into a confusing failure.
        redirect_slashes=False,
        middleware=[
            # Outside the boundary, so that an allowed page can also read why its request was refused.
            Middleware(
                _Cors,
                allow_origins=origins,
                allow_methods=("GET", "POST"),
                allow_headers=("authorization", "content-type", "x-api-key"),
                expose_headers=("retry-after",),
                allow_private_network=True,
            ),
            Middleware(Boundary),
            Middleware(TrustedHostMiddleware, allowed_hosts=settings.hosts(), www_redirect=False),
            Middleware(Gate, tokens=tokens, origins=origins, open_to_all=settings.no_auth),
            Middleware(RequestBodyLimitMiddleware, max_body_size=settings.max_body_bytes),
        ],
        exception_handlers=dict.fromkeys((ApiError, HTTPException, RequestValidationError), response_to),
    )
    outcomes = OutcomeLog(outcome_log_path(), version=version()) if settings.outcome_log else None
    app.state.app_state = AppState(
        settings=settings,
        loader=loader,
        admission=admission,
        metrics=metrics,
        deliveries=Deliveries(outcomes),
        describe=(lambda: described) if describing is None else lambda: status.behind(describing()),
        edits=EditService(SuggestionFilter(settings.aggressiveness), context=settings.context_tokens),
    )
    for router in ROUTERS:
        app.include_router(router)
    app.state.public_paths = public_paths(app)
    return app
