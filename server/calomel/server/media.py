"""What a request's body may be: its declared type, and how many values it may hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from calomel.server.errors import MediaTypeError, TooManyValuesError

# Clients send tens of values, and texts of any length. A million of them keep the parser, and so the event loop, busy
# for a second; so many, some ten milliseconds.
MOST_VALUES: Final = 20_000
# A body of so many bytes cannot hold many.
_SHORT: Final = 16_384
_QUOTE, _BACKSLASH = b'"', 0x5C
_SEPARATORS: Final = (b",", b"[", b"{")
_BYTE_ORDER_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


async def require_json(request: Request) -> None:
    """Raise MediaTypeError unless the body is declared as JSON: pages of other origins may send the simple types."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise MediaTypeError


class BoundedRoute(APIRoute):
    """A route that refuses a body of too many values before it is parsed."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with the look at the body before it."""
        handler = super().get_route_handler()

        async def bounded(request: Request) -> Response:
            if request.method == "POST":
                body = await request.body()
                if len(body) > _SHORT and await asyncio.to_thread(has_too_many_values, body):
                    raise TooManyValuesError
            return await handler(request)

        return bounded


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
