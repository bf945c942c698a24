"""Several requests at one engine for one question: sent together, waited for, and dropped together."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from calomel.engine import Engine, Handle, Request, Result


class Errands:
    """The requests of one question. Leaving the block, for whatever reason, cancels those that are not done."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sent: list[Handle] = []

    async def run(self, requests: Sequence[Request]) -> list[Result | None]:
        """The results in the order of `requests`; None for one that the deadline came before.

        Raises:
            EngineError: a request is wrong, or failed for another reason.
        """
        from calomel.engine import DeadlineExceededError  # imports torch, which came with the engine

        handles = self._engine.submit_all(requests) if requests else ()
        self._sent += handles
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
