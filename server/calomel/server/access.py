"""Who may call a route, and what its body may be: said where the route is made, and nowhere else.

A route that says nothing is refused when the application is made, so that nobody can forget it (CVE-2026-2611).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.responses import Response

from calomel.server.errors import MediaTypeError, StartError, TooManyValuesError
from calomel.server.wire import ErrorResponse

# Clients send tens of values, and texts of any length. A million of them keep the parser, and so the event loop, busy
# for a second; so many, some ten milliseconds.
MOST_VALUES: Final = 20_000
# A body of so many bytes cannot hold many.
_SHORT: Final = 16_384
_QUOTE, _BACKSLASH = b'"', 0x5C
_SEPARATORS: Final = (b",", b"[", b"{")
_BYTE_ORDER_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


_TOO_LARGE: Final = 413


class JsonRoute(APIRoute):
    """A route whose body is declared as JSON, and holds no more values than can be parsed in no time.

    Attributes:
        most_bytes: that are taken of a body; None for what the whole server reads.
    """

    most_bytes: int | None = None

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with the look at the body before it."""
        handler = super().get_route_handler()

        async def checked(request: Request) -> Response:
            if request.method == "POST":
                _require_json(request)
                body = await request.body()
                if len(body) > _SHORT and await asyncio.to_thread(has_too_many_values, body):
                    raise TooManyValuesError
                if self.most_bytes is not None and len(body) > self.most_bytes:
                    raise HTTPException(_TOO_LARGE)
            return await handler(request)

        return checked


class PublicRoute(JsonRoute):
    """A route that everybody may send something to."""

    most_bytes = 64 * 1024


def _require_json(request: Request) -> None:
    """Raise MediaTypeError unless the body is declared as JSON: pages of other origins may send the simple types."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise MediaTypeError


def has_too_many_values(body: bytes) -> bool:
    """Whether a JSON text holds more than `MOST_VALUES` numbers, strings, lists and objects.

    Counts what separates them outside of strings, in time that grows with the length alone. In UTF-16 and UTF-32, which
    Python's parser takes too, it counts inside of strings as well.
    """
    if b"\0" in body[:4] or body.startswith(_BYTE_ORDER_MARKS):
        return sum(map(body.count, _SEPARATORS)) > MOST_VALUES
    values = at = 0
    while at < len(body):
        start = body.find(_QUOTE, at)
        outside = len(body) if start < 0 else start
        values += sum(body.count(each, at, outside) for each in _SEPARATORS)
        if values > MOST_VALUES:
            return True
        if start < 0:
            break
        at = _closing(body, start) + 1
    return False


def _closing(body: bytes, start: int) -> int:
    """Where the string that begins at `start` ends."""
    end = start
    while True:
        end = body.find(_QUOTE, end + 1)
        if end < 0:
            return len(body)
        before = end - 1
        while body[before] == _BACKSLASH:
            before -= 1
        if (end - before) % 2:
            return end


async def with_token() -> None:
    """Declares that a route wants the token. `Authentication` asks for it before the request gets here."""


async def without_token() -> None:
    """Declares that everybody may call a route: it must tell nothing of the user's text, and change nothing of it."""


def protected_router() -> APIRouter:
    """A router whose routes want the token."""
    return _router(with_token, JsonRoute)


def public_router() -> APIRouter:
    """A router whose routes everybody may call."""
    return _router(without_token, PublicRoute)


def _router(access: Callable[[], Awaitable[None]], route: type[JsonRoute]) -> APIRouter:
    errors: dict[int | str, dict[str, Any]] = {each: {"model": ErrorResponse} for each in ("4XX", "5XX")}
    return APIRouter(dependencies=[Depends(access)], route_class=route, responses=errors)


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
