"""What a caller holds while its request is served: wait for it, watch it or cancel it, from threads or coroutines."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from itertools import islice
from typing import Final

from calomel.engine.errors import EngineError
from calomel.engine.request import CanvasState, Result

# Positions in all canvas states of one request: 16 MB. 8,192 tokens on canvases of 32 would take half a gigabyte.
_KEPT_POSITIONS: Final = 1_000_000
# States that a slow reader still gets: each has all that the ones before it had.
_WAITING: Final = 32


class Handle:
    """A submitted request. Every method may be called from any thread."""

    def __init__(self, on_cancel: Callable[[], None] = lambda: None) -> None:
        self._on_cancel = on_cancel
        self._future: Future[Result] = Future()
        self._future.set_running_or_notify_cancel()  # so that cancelling a waiter never cancels the future itself
        self._changed = threading.Condition()
        self._states: deque[CanvasState] = deque()
        self._dropped = 0
        self._positions = 0
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
        """The recorded canvas states until the request is done. Errors come from `result`.

        All from the first on; of a very long answer the early ones are dropped: each takes the place of the last.
        """
        seen = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda seen=seen: self._recorded > seen or self.done)  # type: ignore[misc]
                fresh, seen, done = self._since(seen), self._recorded, self.done
            yield from fresh
            if done and not fresh:
                return

    async def astates(self) -> AsyncIterator[CanvasState]:
        """`states` for a coroutine; of many that wait for it, the last ones. Other tasks run between any two."""
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
                    fresh, seen, done = self._since(seen), self._recorded, self.done
                for state in fresh[-_WAITING:]:
                    yield state
                    await asyncio.sleep(0)
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
            self._positions += len(state.ids)
            while self._positions > _KEPT_POSITIONS and len(self._states) > 1:
                self._positions -= len(self._states.popleft().ids)
                self._dropped += 1
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

    @property
    def _recorded(self) -> int:
        """How many states were recorded, dropped ones included."""
        return self._dropped + len(self._states)

    def _since(self, seen: int) -> list[CanvasState]:
        """The states after the first `seen`, as far as they are kept."""
        return list(islice(self._states, max(0, seen - self._dropped), None))

    def _wake(self) -> None:
        self._changed.notify_all()
        for waker in self._wakers:
            waker()
