from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from calomel.lsp.services import Connect, ModelLink
from calomel.suggest.completer import CompleteAnswer, Completer, CompleteRequest, CompleterError, ModelInfo


@dataclass
class Named:
    """A server that takes its time to be left."""

    name: str
    leave: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        raise NotImplementedError

    async def info(self) -> ModelInfo:
        return ModelInfo(self.name, "0", ("fill",), 4096, 2048, None, "1")

    async def aclose(self) -> None:
        await self.leave.wait()
        self.closed = True


def to(server: Completer) -> Connect:
    async def connect() -> Completer:
        return server

    return connect


def nowhere(message: str) -> Connect:
    async def connect() -> Completer:
        raise CompleterError("unreachable", message)

    return connect


async def test_of_settings_that_change_twice_the_last_ones_count() -> None:
    first, second = Named("first"), Named("second")
    second.leave.set()
    link = ModelLink(to(first), lambda *_: None, lambda: 0.0, lambda _: None)
    await link.start()
    moves = [asyncio.create_task(link.reconnect(each)) for each in (to(second), nowhere("no third"))]
    for _ in range(5):  # both have begun, while the first server is still being left
        await asyncio.sleep(0)
    first.leave.set()
    await asyncio.gather(*moves)

    with pytest.raises(CompleterError, match="no third"):
        await link.info()
    assert (link.state, link.message) == ("error", "no third")
    assert first.closed
    await link.aclose()
