"""The declared type of a request's body."""

from __future__ import annotations

from fastapi import Request

from calomel.server.errors import MediaTypeError


async def require_json(request: Request) -> None:
    """Raise MediaTypeError unless the body is declared as JSON: pages of other origins may send the simple types."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise MediaTypeError
