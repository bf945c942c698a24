"""Who may come in: one token, compared in constant time, required by default on every path.

The decision is made on the path that the router matches (`scope["path"]`), never on a URL built from the Host header
(CVE-2026-48710), and before the body is read.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from calomel.server.errors import InvalidTokenError, LoginError

# RFC 6455, section 7.4.1: policy violation.
_POLICY_VIOLATION = 1008
# The one page that people open: a browser asks for the token there, and sends it along with what the page fetches.
_PAGE = "/"


def new_token() -> str:
    """A random token of 256 bits."""
    return secrets.token_urlsafe(32)


class Authentication:
    """ASGI middleware that refuses requests without the token, but for the paths in `app.state.public_paths`.

    The token is read from `Authorization: Bearer TOKEN`, from `X-Api-Key: TOKEN`, or from the password of
    `Authorization: Basic`. A token of None lets everybody in.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or raise InvalidTokenError for the boundary outside."""
        if scope["type"] == "lifespan" or self._admits(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        else:
            raise LoginError if (scope["method"], scope["path"]) == ("GET", _PAGE) else InvalidTokenError

    def _admits(self, scope: Scope) -> bool:
        if self._token is None or scope["path"] in scope["app"].state.public_paths:
            return True
        return hmac.compare_digest(offered_token(Headers(scope=scope)), self._token)


def offered_token(headers: Headers) -> bytes:
    """What a request shows as its token; empty when it shows none."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    match scheme.lower():
        case "bearer":
            return value.strip().encode("latin-1")
        case "basic":
            return _password(value.strip())
        case _:
            return headers.get("x-api-key", "").encode("latin-1")


def _password(credentials: str) -> bytes:
    """Of `Authorization: Basic` (RFC 7617); the name before it is of no meaning."""
    try:
        return base64.b64decode(credentials.encode("latin-1"), validate=True).partition(b":")[2]
    except binascii.Error:
        return b""
