"""The link to the model: connected in the background, watched, and counted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from calomel.lsp.lateness import Lateness
from calomel.lsp.log import describe
from calomel.lsp.notices import State
from calomel.suggest.completer import CompleteAnswer, Completer, CompleteRequest, CompleterError, ModelInfo

LOG: Final = logging.getLogger(__name__)

# A server that is gone is looked for again, and not at every keystroke.
RETRY_SECONDS: Final = 5.0

_LOST: Final = "Its server ended; Calomel starts it again, or looks for it."

Connect = Callable[[], Awaitable[Completer]]
Tell = Callable[[State, str], None]


class ModelLink:
    """A `Completer` that can be asked before there is one: until then it says that it is loading.

    Args:
        connect: finds or starts the model's server.
        tell: learns of each change of state.
        clock: seconds.
        lateness: learns of answers that came too late, and of those that did not.
    """

    def __init__(self, connect: Connect, tell: Tell, clock: Callable[[], float], lateness: Lateness) -> None:
        self.state: State = "loading"
        self.message = "Looking for the model's server."
        self.known: ModelInfo | None = None
        self.last_request: dict[str, Any] | None = None
        self._connect = connect
        self._tell = tell
        self._clock = clock
        self._lateness = lateness
        self._completer: Completer | None = None
        self._loading: asyncio.Task[ModelInfo] | None = None
        self._failed_at = float("-inf")
        # Settings may change again while the last server is still being left.
        self._moving = asyncio.Lock()

    def start(self) -> asyncio.Task[ModelInfo]:
        """Connect in the background; the task ends when the model is loaded, or cannot be."""
        if self._loading is None:
            self._say("loading", "The model is loading.")
            self._loading = asyncio.create_task(self._load(), name="calomel-model")
            self._loading.add_done_callback(self._loaded)
        return self._loading

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Ask the model. Raises CompleterError."""
        if self._completer is None or self.known is None:
            self._retry()
            code = "unreachable" if self.state == "error" else "loading"
            raise CompleterError(code, self.message)
        began = self._clock()
        try:
            answer = await self._completer.complete(request)
        except CompleterError as error:
            if error.code in {"unreachable", "loading"}:
                # The server died or was replaced; whoever resolves its address next finds or starts one.
                self.known = None
                self._failed_at = float("-inf")
                self._retry()
                # Whether a model can be reached is known when that is over.
                raise CompleterError("loading", _LOST) from error
            if error.code in {"timeout", "overloaded"}:
                self._lateness.note(late=True)
            raise
        except asyncio.CancelledError:
            # Who typed on took the question back; who waited until its end got nothing from it.
            if self._is_late(request, began):
                self._lateness.note(late=True)
            raise
        self._lateness.note(late=self._is_late(request, began))
        self.last_request = {
            "kind": request.kind,
            "context_tokens": answer.context_tokens,
            "cached_tokens": answer.cached_tokens,
            "candidates": len(answer.candidates),
            "seconds": round(self._clock() - began, 4),
            "queued_seconds": round(answer.timings.queued, 4),
            "engine_seconds": round(answer.timings.total, 4),
            "model": answer.model,
        }
        return answer

    async def info(self) -> ModelInfo:
        """What the model is; waits until it is loaded. Raises CompleterError."""
        if self.known is not None:
            return self.known
        self._retry()
        if self._loading is None:
            raise CompleterError("unreachable", self.message)
        # Whoever stops waiting does not stop the loading.
        return await asyncio.shield(self._loading)

    async def reconnect(self, connect: Connect) -> None:
        """Leave this server for another, as changed settings want it; of several, the last one asked for counts."""
        async with self._moving:
            await self.aclose()
            self._connect = connect
            self._failed_at = float("-inf")
            self.start()

    async def aclose(self) -> None:
        """Stop loading and let go of the connection."""
        loading, self._loading = self._loading, None
        if loading is not None:
            loading.cancel()
            await asyncio.wait({loading})
        completer, self._completer, self.known = self._completer, None, None
        if completer is not None:
            await completer.aclose()

    def _is_late(self, request: CompleteRequest, began: float) -> bool:
        return request.deadline is not None and self._clock() - began >= request.deadline

    async def _load(self) -> ModelInfo:
        if self._completer is None:
            self._completer = await self._connect()
        return await self._completer.info()

    def _loaded(self, task: asyncio.Task[ModelInfo]) -> None:
        if self._loading is not task:
            if not task.cancelled():
                task.exception()
            return
        self._loading = None
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self.known = task.result()
            self._say("ready", f"{self.known.id} is ready.")
            return
        self._failed_at = self._clock()
        if isinstance(error, CompleterError):
            self._say("error", str(error))
        else:
            LOG.error("the model did not load: %s", describe(error))
            self._say("error", "The model did not load; the log says more.")

    def _retry(self) -> None:
        if self._loading is None and self._clock() - self._failed_at >= RETRY_SECONDS:
            self.start()

    def _say(self, state: State, message: str) -> None:
        self.state, self.message = state, message
        self._tell(state, message)
