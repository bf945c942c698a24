"""Requests that other processes answer: the door forwards each one whole, and sends back the response.

The path of a request: `Forwarding` in the server's own process, after the checks of host, token and size; the replica
that its session belongs to (`calomel.server.replicas`); `answers` there, around the same application.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, nullcontext
from typing import Final, Protocol, cast

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calomel.server.door import Door, client_of, event, session_of, while_there
from calomel.server.errors import ReplicaLostError
from calomel.server.wire import ErrorResponse

_log = logging.getLogger("calomel.server")

# This header names the replica that answered.
REPLICA_HEADER: Final = "x-calomel-replica"
# How often a request is sent: one that crashes every replica it reaches must not crash them all for ever.
MAX_SENDINGS: Final = 3
# What a replica needs of a request; the other parts of a scope are objects of this process.
_KEPT: Final = (
    *("type", "http_version", "method", "scheme", "path", "raw_path", "query_string", "root_path", "headers"),
    *("client", "server"),
)
_FEEDBACK: Final = "/feedback"


class Replicas(Protocol):
    """Processes that run the application, as the door sees them.

    Attributes:
        wanted: how many there should be.
        ready: how many could answer at the last check.
    """

    wanted: int
    ready: int

    def ask(self, session: str, scope: Scope, body: bytes) -> AsyncGenerator[Sequence[Message]]:
        """Have one replica answer, the same one per session while it exists; closing the iterator cancels the request.

        Raises:
            ReplicaLostError: it is lost.
        """

    async def ask_all(self, scope: Scope, body: bytes) -> Mapping[str, Sequence[Message]]:
        """The answers of all replicas, by their names. Raises ReplicaLostError when there is none."""


class Forwarding:
    """ASGI middleware, the innermost: forwards requests to replicas, once they are ready.

    `/health` is answered here, and feedback goes to all of them: an id does not tell which replica made it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises ReplicaLostError when no replica could, and what admission raises."""
        door: Door = scope["app"].state.door
        if scope["type"] != "http" or door.admission.draining or door.loader.state != "ready":
            await self._app(scope, receive, send)
            return
        replicas = cast("Replicas", door.loader.filler())
        count = {"wanted": replicas.wanted, "ready": replicas.ready}
        request, path = Request(scope, receive), scope["path"]
        request.state.replicas = count
        if path == "/health":
            await self._app(scope, receive, send)
            return
        body = await request.body()
        sent = {**{name: scope[name] for name in _KEPT if name in scope}, "state": {"replicas": count}}
        asks = scope["method"] == "POST" and path != _FEEDBACK
        with door.admission.place(client_of(request)) if asks else nullcontext():
            if path == _FEEDBACK:
                for message in next(iter((await replicas.ask_all(sent, body)).values())):
                    await send(message)
            else:
                await while_there(request, _pass_on(replicas, session_of(request), sent, body, send))


async def _pass_on(replicas: Replicas, session: str, scope: Scope, body: bytes, send: Send) -> None:
    """Send what a replica answers; if it is lost before its answer began, another one is asked."""
    head: Message | None = None
    for left in range(MAX_SENDINGS - 1, -1, -1):
        try:
            async with aclosing(replicas.ask(session, scope, body)) as answer:
                async for messages in answer:
                    for message in messages:
                        head = head or message
                        await send(message)
        except ReplicaLostError as error:
            _log.warning("a replica was lost while it answered %s %s", scope["method"], scope["path"])
            if head is None and left and replicas.ready:
                continue
            if head is None or not Headers(raw=head["headers"]).get("content-type", "").startswith("text/event-stream"):
                raise
            # As in any failed stream, an error is its last event.
            last = event(ErrorResponse.model_validate(error.body()))
            await send({"type": "http.response.body", "body": last})
        return


async def answers(app: ASGIApp, replica: str, scope: Scope, body: bytes) -> AsyncGenerator[Sequence[Message]]:
    """The response of a replica's application, as it comes; closing the iterator means that the client left.

    Args:
        app: the application.
        replica: its name, which is added to the response.
        scope: of the request.
        body: of the request.
    """
    said: asyncio.Queue[Message | None] = asyncio.Queue()
    bodies = [body]

    async def receive() -> Message:
        if not bodies:
            # A client that leaves cancels the task: no more messages come.
            await asyncio.Event().wait()
        return {"type": "http.request", "body": bodies.pop(), "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (REPLICA_HEADER.encode(), replica.encode())]
        said.put_nowait(message)

    async def run() -> None:
        known = {"replicas": {**scope["state"]["replicas"], "name": replica}}
        try:
            await app({**scope, "asgi": {"version": "3.0"}, "state": known}, receive, send)
        finally:
            said.put_nowait(None)

    task = asyncio.create_task(run())
    try:
        ended = False
        while not ended:
            found = [await said.get()]
            while not said.empty():
                found.append(said.get_nowait())
            ended = found[-1] is None
            yield [message for message in found if message is not None]
    finally:
        task.cancel()
