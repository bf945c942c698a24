"""Ends work whose client has gone.

ASGI servers cancel a streaming answer when the connection closes, but let a plain one run to its end; an editor that
drops a request at every keystroke would then keep the engine busy with answers for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from calomel.server.errors import ClientGoneError

Answer = TypeVar("Answer")


async def until_disconnect(request: Request, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Await `work`; cancel it and raise ClientGoneError when the client closes the connection first.

    The request's body must have been read.
    """
    task = asyncio.create_task(work)
    watch = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGoneError
    finally:
        task.cancel()
        watch.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
