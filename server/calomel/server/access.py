"""Who may call a route, and what its body may be.

A route that says nothing wants the token, so that nobody can forget it (CVE-2026-2611).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.responses import Response

from calomel.server.errors import MediaTypeError, TooManyValuesError
from calomel.server.wire import ErrorResponse

# Clients send tens of values, and texts of any length. A million of them keep the parser, and so the event loop, busy
# for a second; so many, some ten milliseconds.
MOST_VALUES: Final = 20_000
# A body of so many bytes cannot hold many.
_SHORT: Final = 16_384
_SEPARATORS: Final = (b",", b"[", b"{")
_BYTE_ORDER_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
# Of a body that everybody may send.
_MOST_PUBLIC_BYTES: Final = 64 * 1024
_ERRORS: Final[dict[int | str, dict[str, Any]]] = {each: {"model": ErrorResponse} for each in ("4XX", "5XX")}


class JsonRoute(APIRoute):
    """A route whose body is declared as JSON, and holds no more values than can be parsed in no time."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with the look at the body before it."""
        handler = super().get_route_handler()

        async def checked(request: Request) -> Response:
            if request.method == "POST":
                _require_json(request)
                body = await request.body()
                if len(body) > _SHORT and await asyncio.to_thread(has_too_many_values, body):
                    raise TooManyValuesError
            return await handler(request)

        return checked


class PublicRoute(JsonRoute):
    """A route that everybody may call: it must tell nothing of the user's text, and change nothing of it."""


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
    if b"\0" not in body[:4] and not body.startswith(_BYTE_ORDER_MARKS):
        quoted = body.replace(rb"\\", b"").replace(rb"\"", b"")
        if quoted.count(b'"') > 4 * MOST_VALUES:
            # Names and texts alone are as many: each has two, and a comma stands behind two of them at the latest.
            return True
        body = b"".join(quoted.split(b'"')[::2])
    return sum(map(body.count, _SEPARATORS)) > MOST_VALUES


def protected_router() -> APIRouter:
    """A router whose routes want the token; `Gate` asks for it before a request gets there."""
    return APIRouter(route_class=JsonRoute, responses=_ERRORS)


def public_router() -> APIRouter:
    """A router whose routes everybody may call."""
    return APIRouter(route_class=PublicRoute, responses=_ERRORS, max_body_size=_MOST_PUBLIC_BYTES)


def public_paths(app: FastAPI) -> frozenset[str]:
    """The paths that answer without a token: those of public routes and no others, so that nobody can forget it."""
    routes = iter_route_contexts(app.routes)
    return frozenset(str(route.path) for route in routes if isinstance(route.original_route, PublicRoute))
