"""What a caller holds while its request is served: wait for it, watch it, cancel it, from a thread or a coroutine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future

from calomel.engine.errors import EngineError
from calomel.engine.result import CanvasState, Result


class Handle:
    """A submitted request. Every method may be called from any thread."""

    def __init__(self, on_cancel: Callable[[], None] = lambda: None) -> None:
        self._on_cancel = on_cancel
        self._future: Future[Result] = Future()
        self._future.set_running_or_notify_cancel()  # so that cancelling a waiter never cancels the future itself
        self._changed = threading.Condition()
        self._states: list[CanvasState] = []
        self._wakers: list[Callable[[], None]] = []
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    @property
    def done(self) -> bool:
        """Whether a result or an error is there."""
        return self._future.done()

    def cancel(self) -> None:
        """Ask the engine to drop the request; it leaves at its next step or prefill chunk."""
        if not self._cancelled:
            self._cancelled = True
            self._on_cancel()

    def result(self, timeout: float | None = None) -> Result:
        """Block until the answer is there.

        Raises:
            EngineError: the request failed, was cancelled, or the engine stopped.
            TimeoutError: `timeout` seconds have passed; the request goes on.
        """
        return self._future.result(timeout)

    async def wait(self) -> Result:
        """Wait for the answer without blocking the event loop; cancelling the waiting task cancels the request."""
        try:
            return await asyncio.wrap_future(self._future)
        except asyncio.CancelledError:
            self.cancel()
            raise

    def states(self) -> Iterator[CanvasState]:
        """Every recorded canvas state, from the first on, until the request is done. Errors come from `result`."""
        seen = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda seen=seen: len(self._states) > seen or self.done)  # type: ignore[misc]
                fresh, done = self._states[seen:], self.done
            yield from fresh
            seen += len(fresh)
            if done and not fresh:
                return

    async def astates(self) -> AsyncIterator[CanvasState]:
        """`states` for a coroutine."""
        loop, wake, seen = asyncio.get_running_loop(), asyncio.Event(), 0

        def waker() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(wake.set)

        with self._changed:
            self._wakers.append(waker)
        try:
            while True:
                wake.clear()
                with self._changed:
                    fresh, done = self._states[seen:], self.done
                for state in fresh:
                    yield state
                seen += len(fresh)
                if done and not fresh:
                    return
                if not fresh:
                    await wake.wait()
        finally:
            with self._changed:
                self._wakers.remove(waker)

    def push(self, state: CanvasState) -> None:
        """For the engine: record one canvas state."""
        with self._changed:
            self._states.append(state)
            self._wake()

    def settle(self, outcome: Result | EngineError) -> None:
        """For the engine: end the request, once."""
        with self._changed:
            if self._future.done():
                return
            if isinstance(outcome, EngineError):
                self._future.set_exception(outcome)
            else:
                self._future.set_result(outcome)
            self._wake()

    def _wake(self) -> None:
        self._changed.notify_all()
        for waker in self._wakers:
            waker()
