"""The outermost layer: whatever goes wrong inside leaves in the published shape, and only the reason is logged.

Starlette's own handler would raise the error again, and the ASGI server would log its message, which may quote the
user's text. Here the log gets the error's type and the places in the code, never its message.
"""

from __future__ import annotations

import asyncio
import logging

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calomel.server.errors import ClientGoneError, DoorError, DrainingError, from_status

_log = logging.getLogger("calomel.server")


class ErrorBoundary:
    """ASGI middleware; goes around all others."""

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
        except DoorError as error:
            await reply.fail(error)
        except asyncio.CancelledError:
            # Nobody else cancels a request from outside: the server ends, and its time for running ones is over.
            await reply.fail(DrainingError())
        except (ClientDisconnect, ClientGoneError):
            _log.debug("the client closed the connection")
        except Exception as error:  # noqa: BLE001 (nothing is outside to catch it)
            log_failure(error)
            await reply.fail(DoorError())


class _Reply:
    """The way out of one request. Plain-text errors of library middleware are put into the published shape."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._started = False
        self._replaced: int | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            plain = Headers(raw=message["headers"]).get("content-type", "").startswith("text/plain")
            if plain and message["status"] >= 400:  # noqa: PLR2004 (RFC 9110: errors)
                self._replaced = message["status"]
                return
        if self._replaced is not None:
            if not message.get("more_body", False):
                await from_status(self._replaced)(self._scope, self._receive, self._send)
            return
        await self._send(message)

    async def fail(self, error: DoorError) -> None:
        """Send an error, unless an answer has begun: then the connection just ends."""
        if not self._started:
            await error.response()(self._scope, self._receive, self._send)


def log_failure(error: BaseException) -> None:
    """Log an unexpected error. The server's log (`logs`) writes its type and where it came from, and no more."""
    # A stand-in of the same type's name: other handlers would print the message, which may quote the user's text.
    stand_in = _Unexpected(type(error).__name__).with_traceback(error.__traceback__)
    _log.error("unexpected %s", type(error).__name__, exc_info=(_Unexpected, stand_in, error.__traceback__))


class _Unexpected(Exception):  # noqa: N818 (says what was not expected, for the log alone)
    """Stands in for an error whose message is nobody's business."""
