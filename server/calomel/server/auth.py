"""Who may come in: whoever shows a token, compared in constant time, required by default on every path.

The decision is made on the path that the router matches (`scope["path"]`), never on a URL built from the Host header
(CVE-2026-48710), and before the body is read.
"""

from __future__ import annotations

import base64
import binascii
import math
import time
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from calomel.server.errors import DoorError, GuessingError, InvalidTokenError, LoginError
from calomel.server.rate import Rates
from calomel.server.tokens import Tokens

# RFC 6455, section 7.4.1: policy violation.
_POLICY_VIOLATION: Final = 1008
# The one page that people open: a browser asks for the token there, and sends it along with what the page fetches.
_PAGE: Final = "/"
# Wrong tokens of one address: an editor with an old token shows it at each keystroke, a guesser thousands of times.
_WRONG_PER_MINUTE: Final = 60
_WRONG_AT_ONCE: Final = 30
# Where the rest of the server finds who asks.
CLIENT_STATE: Final = "calomel_client"


class Authentication:
    """ASGI middleware that refuses requests without a token, but for the paths in `app.state.public_paths`.

    The token is read from `Authorization: Bearer TOKEN`, from `X-Api-Key: TOKEN`, or from the password of
    `Authorization: Basic`. The name that belongs to it, if any, is left in the request's state.

    An address that showed too many wrong tokens is answered with 429 for a while when it shows another wrong one. The
    right one lets its owner in whatever others showed: a token has 256 bits, or as many as its owner gave it, and
    programs of one machine share its address.

    Args:
        app: what is inside.
        tokens: the right ones; None lets everybody in.
        clock: seconds, monotonic.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._tokens = tokens
        self._wrong = Rates(_WRONG_PER_MINUTE, _WRONG_AT_ONCE, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or raise a DoorError for the boundary outside."""
        refusal = None if scope["type"] == "lifespan" else self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        else:
            raise refusal

    def _refusal(self, scope: Scope) -> DoorError | None:
        if self._tokens is None or scope["path"] in scope["app"].state.public_paths:
            return None
        offered = offered_token(Headers(scope=scope))
        if not offered:
            return LoginError() if (scope.get("method"), scope["path"]) == ("GET", _PAGE) else InvalidTokenError()
        address = scope["client"][0] if scope.get("client") else ""
        name = self._tokens.owner(offered)
        if name is not None:
            if name:
                scope.setdefault("state", {})[CLIENT_STATE] = name
            return None
        wait = self._wrong.take(address)
        if wait:
            return GuessingError(retry_after=math.ceil(wait))
        return LoginError() if (scope.get("method"), scope["path"]) == ("GET", _PAGE) else InvalidTokenError()


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
