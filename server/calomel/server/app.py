"""The application: routes inside, and around them, from the outside in, errors, hosts, token and body size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import Response

from calomel.server import routes_complete, routes_fim, routes_health, routes_models
from calomel.server.admission import Admission
from calomel.server.auth import Authentication
from calomel.server.boundary import ErrorBoundary
from calomel.server.errors import DoorError, StartError, from_http, from_validation
from calomel.server.idle import CountRequests, Idleness
from calomel.server.loading import FillerFactory, ModelLoader
from calomel.server.settings import ServerSettings
from calomel.suggest.model_info import describe


def create_app(settings: ServerSettings, filler_factory: FillerFactory, idleness: Idleness | None = None) -> FastAPI:
    """The HTTP door to one model.

    Args:
        settings: with a token, unless `no_auth` says that there is none.
        filler_factory: opens the model; called once, in a thread, when the application starts.
        idleness: counts the requests, for a server that ends when nobody uses it.

    Raises:
        StartError: neither a token nor `no_auth` is set.
    """
    if settings.no_auth:
        token = None
    elif settings.token is None:
        raise StartError("the server needs a token, or no-auth to do without one")
    else:
        token = settings.token.get_secret_value()

    loader = ModelLoader(filler_factory, lambda: describe(settings.model))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loader.start()
        try:
            yield
        finally:
            await asyncio.to_thread(loader.close)

    app = FastAPI(
        title="Calomel",
        lifespan=lifespan,
        # Their pages load scripts from a content delivery network; this server stays on this machine.
        docs_url=None,
        redoc_url=None,
        # A redirect would repeat the Host header and turn a POST without a slash into a puzzle.
        redirect_slashes=False,
        middleware=[
            *([] if idleness is None else [Middleware(CountRequests, idleness=idleness)]),
            Middleware(ErrorBoundary),
            Middleware(TrustedHostMiddleware, allowed_hosts=settings.hosts(), www_redirect=False),
            Middleware(Authentication, token=token),
            Middleware(RequestBodyLimitMiddleware, max_body_size=settings.max_body_bytes),
        ],
        exception_handlers={
            DoorError: _door_error,
            HTTPException: _http_error,
            RequestValidationError: _validation_error,
        },
    )
    app.state.loader = loader
    app.state.admission = Admission(settings.max_requests)
    app.state.model = routes_models.describe(settings.model)
    app.include_router(routes_complete.router)
    app.include_router(routes_fim.router)
    app.include_router(routes_models.router)
    app.include_router(routes_health.router)
    return app


async def _door_error(_: Request, error: Exception) -> Response:
    return cast("DoorError", error).response()


async def _http_error(_: Request, error: Exception) -> Response:
    return from_http(cast("HTTPException", error))


async def _validation_error(_: Request, error: Exception) -> Response:
    return from_validation(cast("RequestValidationError", error)).response()
