"""Which web pages may ask: those of this server, and those that its administrator names.

A browser tells with `Origin` which page asks. Whatever page the user looks at could otherwise use a server on his
machine (CVE-2026-22812); no cross-origin header is ever sent to a page that is not on the list, and never the one that
opens private networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calomel.server.errors import OriginError

_PORTS: Final = {"http": 80, "https": 443}
_METHODS: Final = "GET, POST"
_HEADERS: Final = "authorization, content-type, x-api-key"
_EXPOSED: Final = "retry-after"
_MAX_AGE: Final = "600"


class OriginCheck:
    """ASGI middleware; goes inside the check of the Host header, on which it relies.

    Args:
        app: what is inside.
        allowed: further origins, as `scheme://host[:port]`.
    """

    def __init__(self, app: ASGIApp, allowed: Sequence[str]) -> None:
        self._app = app
        self._allowed = frozenset(origin.lower() for origin in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or raise OriginError for the boundary outside."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origins = headers.getlist("origin")
        if not origins:
            if headers.get("sec-fetch-site") == "cross-site" and not _is_visit(scope, headers):
                raise OriginError
            await self._app(scope, receive, send)
            return
        origin = origins[0].lower()
        if len(origins) == 1 and origin in self._allowed:
            await self._serve_page(origin, scope, receive, send)
        elif len(origins) == 1 and _is_own(origin, headers.get("host", "")):
            await self._app(scope, receive, send)
        else:
            raise OriginError

    async def _serve_page(self, origin: str, scope: Scope, receive: Receive, send: Send) -> None:
        allow = {"access-control-allow-origin": origin, "vary": "Origin"}
        if scope["method"] == "OPTIONS" and "access-control-request-method" in Headers(scope=scope):
            # A preflight comes without the token and does nothing.
            more = {"methods": _METHODS, "headers": _HEADERS}
            allow |= {f"access-control-allow-{name}": value for name, value in more.items()}
            await Response(None, 204, {**allow, "access-control-max-age": _MAX_AGE})(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                headers["access-control-allow-origin"] = origin
                headers["access-control-expose-headers"] = _EXPOSED
                headers.add_vary_header("Origin")
                message["headers"] = headers.raw
            await send(message)

        await self._app(scope, receive, with_headers)


def _is_visit(scope: Scope, headers: Headers) -> bool:
    """Whether somebody followed a link to a page, which the page that holds the link cannot read."""
    return scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"


def _is_own(origin: str, host: str) -> bool:
    """Whether the page came from the very name and port that it asks; a TLS proxy may have changed the scheme."""
    page = _split(origin)
    if page is None or page.scheme not in _PORTS:
        return False
    asked = _split(f"{page.scheme}://{host.lower()}")
    return asked is not None and _place(page) == _place(asked)


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    plain = not (parts.path or parts.query or parts.fragment or parts.username or parts.password)
    return parts if parts.hostname and plain else None


def _place(parts: SplitResult) -> tuple[str | None, int]:
    return parts.hostname, parts.port or _PORTS[parts.scheme]
