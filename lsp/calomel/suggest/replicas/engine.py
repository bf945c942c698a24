"""An engine whose forwards are made by replicas."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

from calomel.engine.config import Shape
from calomel.engine.errors import EngineStoppedError, RequestFailedError
from calomel.engine.handle import Handle
from calomel.engine.request import Request, check
from calomel.suggest.replicas.asked import Asked
from calomel.suggest.replicas.group import Group, Losses
from calomel.suggest.replicas.line import Line
from calomel.suggest.replicas.watch import Watch

# So long without any replica, and requests are refused: until then they wait for one that is being started.
DOWN_SECONDS: Final = 60.0


class ReplicatedEngine:
    """Serves requests by asking replicas, from an event loop in a thread of its own.

    Args:
        line: to the replicas.
        shape: of the model.
        replicas: how many are wanted.
        clock: seconds that deadlines are compared with.
        down_seconds: so long without any replica, and requests are refused.

    Attributes:
        config: the shape.
        losses: what became of requests whose replica was lost.
        watch: which replicas are up.

    Raises:
        ReplicasError: they cannot be started.
    """

    def __init__(
        self,
        line: Line,
        shape: Shape,
        replicas: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        down_seconds: float = DOWN_SECONDS,
    ) -> None:
        self.config = shape
        self.losses = Losses()
        self.watch = Watch(line, replicas, clock)
        self._line = line
        self._clock = clock
        self._down_seconds = down_seconds
        self._groups: dict[asyncio.Task[None], Group] = {}
        self._closing = threading.Lock()
        self._closed = False
        self._loop = asyncio.new_event_loop()
        opened: Future[None] = Future()
        # Processes end with the thread that started them: so this one opens the line, and closes it.
        self._thread = threading.Thread(target=self._serve, args=(opened,), name="calomel-replicas", daemon=True)
        self._thread.start()
        try:
            opened.result()
        except BaseException:
            self._closed = True
            self._thread.join()
            raise

    def submit(self, request: Request) -> Handle:
        """Send `request` and return at once. Raises InvalidRequestError, EngineStoppedError."""
        (handle,) = self.submit_all((request,))
        return handle

    def submit_all(self, requests: Sequence[Request]) -> tuple[Handle, ...]:
        """Send `requests` to one replica, for the same moment. Raises as `submit`, before any of them is sent."""
        for request in requests:
            check(request, self.config)
        group: Group
        asked: list[Asked] = []

        def dropping(at: int) -> Callable[[], None]:
            return lambda: self._call(lambda: group.drop(asked[at]))

        asked += [Asked(request, Handle(on_cancel=dropping(at))) for at, request in enumerate(requests)]
        group = Group(self._line, asked, self.losses, self._clock, self.watch.suspect)
        with self._closing:
            if self._closed:
                raise EngineStoppedError("the engine was closed")
            self._loop.call_soon_threadsafe(self._begin, group)
        return tuple(each.handle for each in asked)

    @property
    def occupancy(self) -> tuple[int, int]:
        """How many requests are being served, and how many wait in the replicas, as these said last."""
        # Another thread may add one meanwhile.
        under_way = sum(group.size for group in list(self._groups.values()))
        waiting = min(self.watch.waiting, under_way)
        return under_way - waiting, waiting

    def close(self) -> None:
        """End the replicas; requests that are not done raise EngineStoppedError. May be called twice."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _begin(self, group: Group) -> None:
        if self.watch.down_for(self._clock()) > self._down_seconds:
            group.lose("no replica of the model is up")
            return
        task = group.begin()
        self._groups[task] = group
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Nobody waits for ever, whatever has happened."""
        group = self._groups.pop(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            group.fail(EngineStoppedError("the engine was closed"))
            return
        failure = RequestFailedError(f"asking the replicas failed: {type(error).__name__}")
        failure.__cause__ = error
        group.fail(failure)

    def _looked(self) -> None:
        if self.watch.down_for(self._clock()) > self._down_seconds:
            for group in list(self._groups.values()):
                group.lose("no replica of the model is up")

    def _call(self, work: Callable[[], object]) -> None:
        """Have the loop do it; when the loop has ended there is nothing left to do."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(work)

    def _serve(self, opened: Future[None]) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            try:
                self._line.open()
            except BaseException as error:  # noqa: BLE001  (whoever waits must hear of it, whatever it is)
                opened.set_exception(error)
                return
            opened.set_result(None)
            watching = self._loop.create_task(self.watch.run(self._looked))
            self._loop.run_forever()
            tasks = [watching, *self._groups]
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._line.close()
            self._loop.close()
