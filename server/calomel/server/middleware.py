"""The layers around the routes: errors in the published shape, web pages, tokens, limits; and the kinds of routes.

A route requires the token unless it says otherwise, so that nobody can forget it (CVE-2026-2611). Beyond the limits a
request is refused at once, with a time to retry: a queue that outlasts its clients' patience computes answers that
nobody reads. A full server answers 503; a client that exceeds its share gets 429, since then it is the client that
should slow down.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calomel.infer.proof import PROOF_PATH, SCHEME
from calomel.server.errors import (
    ApiError,
    ClientGoneError,
    DrainingError,
    GuessingError,
    InvalidTokenError,
    LoginError,
    MediaTypeError,
    OriginError,
    OverloadedError,
    RateLimitError,
    TooManyValuesError,
    from_status,
)
from calomel.server.metrics import Metrics
from calomel.server.tokens import Tokens
from calomel.server.wire import ErrorResponse

# How many clients are remembered; the longest absent one is forgotten, and later starts with a full bucket.
_CLIENTS: Final = 4096


class Rates:
    """A rate limit for each client. Used from the event loop only.

    Args:
        per_minute: how often, in the long run.
        burst: how often at once.
        clock: monotonic seconds.
    """

    def __init__(self, per_minute: float, burst: int, clock: Callable[[], float]) -> None:
        self._per_second = per_minute / 60
        self._burst = float(burst)
        self._clock = clock
        # Per client: the level of its bucket, and when that was.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> float:
        """Count one use. Returns 0, or the seconds until the client may retry, and then counts nothing."""
        level = self._level(client)
        if level < 1:
            return (1 - level) / self._per_second
        self._buckets[client] = (level - 1, self._clock())
        self._buckets.move_to_end(client)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0

    def _level(self, client: str) -> float:
        level, then = self._buckets.get(client, (self._burst, 0.0))
        return min(self._burst, level + (self._clock() - then) * self._per_second)


class Admission:
    """Counts the requests that run or wait in the engine. Used from the event loop only, so it takes no lock.

    Args:
        limit: number of places.
        metrics: counts refusals.
        share: the share of the places that one client may hold.

    Attributes:
        taken: places in use.
        draining: no further request is admitted; those that have a place keep it.
    """

    def __init__(self, limit: int, metrics: Metrics, *, share: float = 1.0) -> None:
        self._limit = limit
        self._each = math.ceil(limit * share)
        self._metrics = metrics
        self._held: Counter[str] = Counter()
        self.taken = 0
        self.draining = False

    @contextmanager
    def place(self, client: str) -> Iterator[None]:
        """Hold one place while the context is open. Raises ApiError when there is none for this client.

        Args:
            client: the client that asks.
        """
        refusal = self._refusal(client)
        if refusal is not None:
            self._metrics.refused[refusal.code] += 1
            raise refusal
        self.taken += 1
        self._held[client] += 1
        try:
            yield
        finally:
            self.taken -= 1
            self._held[client] -= 1
            if not self._held[client]:
                del self._held[client]

    def _refusal(self, client: str) -> ApiError | None:
        if self.draining:
            return DrainingError()
        if self.taken >= self._limit:
            return OverloadedError()
        if self._held[client] >= self._each:
            return RateLimitError()
        return None


_log = logging.getLogger("calomel.server")


class Boundary:
    """ASGI middleware around everything that may refuse: sends errors in the published shape."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; raises nothing."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        reply = _Reply(scope, receive, send)
        try:
            await self._app(scope, receive, reply.send)
        except ApiError as error:
            await reply.fail(error)
        except asyncio.CancelledError:
            # Nothing else cancels a request from outside: the server ends, and the time for running requests is over.
            await reply.fail(DrainingError())
        except (ClientDisconnect, ClientGoneError):
            _log.debug("the client closed the connection")
        except Exception as error:  # noqa: BLE001 (nothing is outside to catch it)
            log_failure(error)
            await reply.fail(ApiError())


class _Reply:
    """Sends the response of one request. Plain-text errors of library middleware are put into the published shape."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._replaced: int | None = None
        self._began = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._began = True
            plain = Headers(raw=message["headers"]).get("content-type", "").startswith("text/plain")
            if plain and message["status"] >= 400:  # noqa: PLR2004 (RFC 9110: errors)
                self._replaced = message["status"]
                return
        if self._replaced is not None:
            if not message.get("more_body", False):
                await from_status(self._replaced)(self._scope, self._receive, self._send)
            return
        await self._send(message)

    async def fail(self, error: ApiError) -> None:
        """Send an error, unless a response has begun: then the connection just ends."""
        if not self._began:
            await error.response()(self._scope, self._receive, self.send)


def log_failure(error: BaseException) -> None:
    """Log an unexpected error. The server's log (`logs`) writes only its type and where it came from."""
    # A stand-in with the name of its type: other handlers would print the message, which may quote the user's text.
    stand_in = _Unexpected(type(error).__name__).with_traceback(error.__traceback__)
    _log.error("unexpected %s", type(error).__name__, exc_info=(_Unexpected, stand_in, error.__traceback__))


class _Unexpected(Exception):  # noqa: N818 (says what was not expected, for the log alone)
    """Stands in for an error whose message must not be logged."""


_PORTS: Final = {"http": 80, "https": 443}


def _is_visit(scope: Scope, headers: Headers) -> bool:
    """Whether the user followed a link to a page, which the linking page cannot read."""
    return scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"


def _is_own(origin: str, host: str) -> bool:
    """Whether the page has the same host and port as this server; a TLS proxy may have changed the scheme."""
    scheme, _, place = origin.partition("://")
    usual = f":{_PORTS.get(scheme)}"
    return scheme in _PORTS and place.removesuffix(usual) == host.lower().removesuffix(usual)


# The only page that people open: the browser asks for the token, and sends it with everything the page fetches.
_PAGE: Final = "/"
# Wrong tokens per address: an editor with an old token sends it at each keystroke, an attacker thousands of times.
_WRONG_PER_MINUTE: Final = 60
_WRONG_AT_ONCE: Final = 30
# The key of the client's name in the request's state.
CLIENT_STATE: Final = "calomel_client"
# The key of what is called in a request's state once its client is known, which keeps its connection.
WELCOME: Final = "calomel_welcome"


def _welcome(scope: Scope) -> None:
    """Tell the connection, if it wants to know, that whoever has it may stay."""
    scope.get("state", {}).get(WELCOME, lambda: None)()


class Gate:
    """ASGI middleware that admits requests; runs inside the check of the Host header, on which it relies.

    Web pages of other addresses are refused, except the allowed ones; so are requests without a token, except for
    the paths in `app.state.public_paths`.

    The token is read from `Authorization: Bearer TOKEN`, from `X-Api-Key: TOKEN`, or from the password of
    `Authorization: Basic`. The name of its owner, if any, is stored in the request's state.

    An address that sent too many wrong tokens gets 429 for a while when it sends another wrong one. The right token
    is accepted whatever others sent: a token has 256 bits, or as many as its owner gave it, and programs on one
    machine share its address.

    Args:
        app: what is inside.
        tokens: the valid ones.
        open_to_all: whoever has no token is admitted, too; then a token only proves to editors who listens.
        origins: of pages that are allowed, as `scheme://host[:port]`, in lower case.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens | None,
        origins: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
        *,
        open_to_all: bool = False,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._open = open_to_all
        self._origins = origins
        self._wrong = Rates(_WRONG_PER_MINUTE, _WRONG_AT_ONCE, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or raise a ApiError for the boundary outside."""
        if scope["type"] == "http":
            self._check_page(scope, Headers(scope=scope))
            if (scope["method"], scope["path"]) == ("GET", PROOF_PATH) and self._tokens is not None:
                answer = self._prove(self._tokens, scope)
                _welcome(scope)
                await answer(scope, receive, send)
                return
            if scope["path"] not in scope["app"].state.public_paths:
                if self._tokens is not None and not self._open:
                    self._identify(self._tokens, scope)
                _welcome(scope)
        await self._app(scope, receive, send)

    def _check_page(self, scope: Scope, headers: Headers) -> None:
        match [origin.lower() for origin in headers.getlist("origin")]:
            case []:
                if headers.get("sec-fetch-site") == "cross-site" and not _is_visit(scope, headers):
                    raise OriginError
            case [origin] if origin in self._origins or _is_own(origin, headers.get("host", "")):
                return
            case _:
                raise OriginError

    def _identify(self, tokens: Tokens, scope: Scope) -> None:
        offered = offered_token(Headers(scope=scope))
        name = tokens.owner(offered) if offered else None
        if name is None:
            self._count(scope, guessed=bool(offered))
            raise LoginError if (scope["method"], scope["path"]) == ("GET", _PAGE) else InvalidTokenError
        if name:
            scope.setdefault("state", {})[CLIENT_STATE] = name

    def _prove(self, tokens: Tokens, scope: Scope) -> Response:
        """The proof that this server knows the token, for a client that does; a stranger gets none."""
        scheme, _, credentials = Headers(scope=scope).get("authorization", "").partition(" ")
        answer = tokens.answer_to(credentials) if scheme == SCHEME else None
        if answer is None:
            self._count(scope, guessed=bool(credentials))
            raise InvalidTokenError
        return JSONResponse({"proof": answer})

    def _count(self, scope: Scope, *, guessed: bool) -> None:
        """Count a guess. Raises GuessingError for too many."""
        wait = self._wrong.take(scope["client"][0] if scope.get("client") else "") if guessed else 0.0
        if wait:
            raise GuessingError(retry_after=math.ceil(wait))


def offered_token(headers: Headers) -> bytes:
    """The token of a request; empty when it has none."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    match scheme.lower():
        case "bearer":
            return value.strip().encode("latin-1")
        case "basic":
            return _password(value.strip())
        case _:
            return headers.get("x-api-key", "").encode("latin-1")


def _password(credentials: str) -> bytes:
    """The password in `Authorization: Basic` (RFC 7617); the user name before it is ignored."""
    try:
        return base64.b64decode(credentials.encode("latin-1"), validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


# Clients send tens of values, and texts of any length. A million values keep the parser, and so the event loop, busy
# for a second; this many, some ten milliseconds.
MOST_VALUES: Final = 20_000
# A body of this many bytes cannot hold too many.
_SHORT: Final = 16_384
_SEPARATORS: Final = (b",", b"[", b"{")
_BYTE_ORDER_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
# The largest body of a public route.
_MOST_PUBLIC_BYTES: Final = 64 * 1024
_ERRORS: Final[dict[int | str, dict[str, Any]]] = {each: {"model": ErrorResponse} for each in ("4XX", "5XX")}


class JsonRoute(APIRoute):
    """A route whose body is declared as JSON and holds few enough values to be parsed quickly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, after a check of the body."""
        handler = super().get_route_handler()

        async def checked(request: Request) -> Response:
            if request.method == "POST":
                # Pages of other origins may send the simple types.
                kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
                if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
                    raise MediaTypeError
                body = await request.body()
                if len(body) > _SHORT and await asyncio.to_thread(has_too_many_values, body):
                    raise TooManyValuesError
            return await handler(request)

        return checked


class PublicRoute(JsonRoute):
    """A route that everyone may call: it must neither reveal nor change any of the user's text."""


def has_too_many_values(body: bytes) -> bool:
    """Whether a JSON text holds more than `MOST_VALUES` numbers, strings, lists and objects.

    Counts the separators outside of strings, in time linear in the length. In UTF-16 and UTF-32, which Python's parser
    accepts too, it counts those inside strings as well.
    """
    if b"\0" not in body[:4] and not body.startswith(_BYTE_ORDER_MARKS):
        quoted = body.replace(rb"\\", b"").replace(rb"\"", b"")
        if quoted.count(b'"') > 4 * MOST_VALUES:
            # The strings alone are too many: each has two quotes, and at least every second one is followed by a comma.
            return True
        body = b"".join(quoted.split(b'"')[::2])
    return sum(map(body.count, _SEPARATORS)) > MOST_VALUES


def protected_router() -> APIRouter:
    """A router whose routes require the token; `Gate` checks it before a request gets there."""
    return APIRouter(route_class=JsonRoute, responses=_ERRORS)


def public_router() -> APIRouter:
    """A router whose routes everyone may call."""
    return APIRouter(route_class=PublicRoute, responses=_ERRORS, max_body_size=_MOST_PUBLIC_BYTES)


def public_paths(app: FastAPI) -> frozenset[str]:
    """The paths that answer without a token: those of public routes and no others, so that nobody can forget it."""
    routes = iter_route_contexts(app.routes)
    return frozenset(str(route.path) for route in routes if isinstance(route.original_route, PublicRoute))
