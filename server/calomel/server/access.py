"""Who may call a route: said where the route is made, and nowhere else.

A route that says nothing is refused when the application is made, so that nobody can forget it (CVE-2026-2611).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute, iter_route_contexts

from calomel.server.errors import StartError
from calomel.server.media import BoundedRoute


async def with_token() -> None:
    """Declares that a route wants the token. `Authentication` asks for it before the request gets here."""


async def without_token() -> None:
    """Declares that everybody may call a route: it must tell nothing of the user's text, and change nothing of it."""


def protected_router(**options: Any) -> APIRouter:
    """A router whose routes want the token."""
    return _router(with_token, **options)


def public_router(**options: Any) -> APIRouter:
    """A router whose routes everybody may call."""
    return _router(without_token, **options)


def _router(access: Callable[[], Awaitable[None]], **options: Any) -> APIRouter:
    dependencies = [Depends(access), *options.pop("dependencies", ())]
    return APIRouter(dependencies=dependencies, route_class=BoundedRoute, **options)


def public_paths(app: FastAPI) -> frozenset[str]:
    """The paths that answer without a token.

    Raises:
        StartError: a route does not say who may call it, or a public one has a path with parameters.
    """
    found: set[str] = set()
    for route in iter_route_contexts(app.routes):
        if not isinstance(route.original_route, APIRoute):
            # The generated document, which the framework adds: not declared, so not public.
            continue
        declared = {dependency.dependency for dependency in route.dependencies}
        if with_token in declared:
            continue
        path = str(route.path)
        if without_token not in declared:
            raise StartError(f"the route {path} does not say who may call it")
        if "{" in path:
            raise StartError(f"the public route {path} has a parameter in its path")
        found.add(path)
    return frozenset(found)
