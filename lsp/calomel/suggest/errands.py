"""Several requests at one engine for one question: sent together, waited for, and dropped together."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from calomel.engine import AnyEngine, Handle, Request, Result


class Errands:
    """The requests of one question. Leaving the block, for whatever reason, cancels those that are not done."""

    def __init__(self, engine: AnyEngine) -> None:
        self._engine = engine
        self._sent: list[Handle] = []

    async def run(self, requests: Sequence[Request]) -> list[Result | None]:
        """Send `requests` and wait for all of them. Raises what `send` and `wait` raise."""
        return await self.wait(self.send(requests))

    def send(self, requests: Sequence[Request]) -> tuple[Handle, ...]:
        """Send `requests` at the same moment. Raises EngineError where one of them is wrong."""
        handles = self._engine.submit_all(requests) if requests else ()
        self._sent += handles
        return handles

    async def wait(self, handles: Sequence[Handle]) -> list[Result | None]:
        """The results in the order of `handles`; None for one that the deadline came before. Raises EngineError."""
        from calomel.engine import DeadlineExceededError  # imports torch, which came with the engine

        results: list[Result | None] = []
        for handle in handles:
            try:
                results.append(await handle.wait())
            except DeadlineExceededError:
                results.append(None)
        return results

    async def need(self, request: Request) -> Result:
        """The result without which there is no answer. Raises EngineError, also when the deadline came before it."""
        handle = self._engine.submit(request)
        self._sent.append(handle)
        return await handle.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._sent:
            if not handle.done:
                handle.cancel()
