"""Who may come in: one token, compared in constant time, required by default on every path.

The decision is made on the path that the router matches (`scope["path"]`), never on a URL built from the Host header
(CVE-2026-48710), and before the body is read.
"""

from __future__ import annotations

import hmac
import secrets

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from calomel.server.errors import InvalidTokenError

# RFC 6455, section 7.4.1: policy violation.
_POLICY_VIOLATION = 1008


def new_token() -> str:
    """A random token of 256 bits."""
    return secrets.token_urlsafe(32)


class Authentication:
    """ASGI middleware that refuses requests without the token, but for the paths in `app.state.public_paths`.

    The token is read from `Authorization: Bearer TOKEN` or from `X-Api-Key: TOKEN`. A token of None lets everybody in.
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
            raise InvalidTokenError

    def _admits(self, scope: Scope) -> bool:
        if self._token is None or scope["path"] in scope["app"].state.public_paths:
            return True
        headers = Headers(scope=scope)
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        offered = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        return hmac.compare_digest(offered.encode("latin-1"), self._token)
