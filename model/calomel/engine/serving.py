"""A thread that serves requests: what every engine is, whatever its model and its way to denoise.

A request's life: `submit` checks it in the caller's thread and queues it; the scheduler admits it; the worker takes it
one step on at a time, side by side with other requests, until it has settled the handle.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Self

import torch

from calomel.engine.alone import alone
from calomel.engine.config import Shape
from calomel.engine.errors import EngineStoppedError, InvalidRequestError
from calomel.engine.handle import Handle
from calomel.engine.pace import Pace
from calomel.engine.request import Request, check
from calomel.engine.scheduler import Scheduler
from calomel.engine.worker import W, Worker

# Seconds. What a person still takes for an answer at once; a chunk of so long has most of a long one's efficiency.
PREFILL_SECONDS: Final = 0.1

# Times `max_batch`: of each priority so many requests may have begun, where that many clients ask.
PLACES: Final = 2


class Serving:
    """Serves requests with one worker, from a thread of its own.

    Args:
        worker: does the work of a step.
        max_batch: requests of one priority that are served at a time.
        prefill_chunk: context tokens encoded per step at most; so long does a cancellation wait.
        prefill_unit: chunks are multiples of it, and one is encoded per step at least.
        prefill_seconds: chunks become shorter where one takes longer while somebody else is served; None for never.
    """

    def __init__(
        self,
        worker: Worker[Any],
        *,
        max_batch: int = 8,
        prefill_chunk: int = 512,
        prefill_unit: int = 1,
        prefill_seconds: float | None = PREFILL_SECONDS,
    ) -> None:
        for name, value in (("max_batch", max_batch), ("prefill_chunk", prefill_chunk)):
            if value < 1:
                raise InvalidRequestError(f"{name} is {value}; it must be at least 1")
        if prefill_seconds is not None and not prefill_seconds > 0:
            raise InvalidRequestError(f"prefill_seconds is {prefill_seconds}; it must be above 0")
        self.config: Shape = worker.config
        self._worker = worker
        self._pace = Pace(most=prefill_chunk, unit=prefill_unit, seconds=prefill_seconds)
        self._scheduler: Scheduler[Any] = Scheduler(
            max_batch=max_batch, pace=self._pace, prefill_unit=prefill_unit, places=PLACES * max_batch
        )
        self._failure: BaseException | None = None
        # The context of the last request: the next one is mostly the same with a letter more.
        self._checked: tuple[int, ...] = ()
        self._thread = threading.Thread(target=self._serve, name="calomel-engine", daemon=True)
        self._thread.start()

    def submit(self, request: Request) -> Handle:
        """Queue `request` and return at once.

        Raises:
            InvalidRequestError: a field is wrong; the subclass and the message tell which.
            EngineStoppedError: the engine was closed, or its thread failed.
        """
        (handle,) = self.submit_all((request,))
        return handle

    def submit_all(self, requests: Sequence[Request]) -> tuple[Handle, ...]:
        """Queue `requests` at the same moment, so that none of them has a forward of its own first.

        Raises:
            InvalidRequestError: a field of one of them is wrong; nothing is queued.
            EngineStoppedError: the engine was closed, or its thread failed.
        """
        for request in requests:
            check(request, self.config, self._checked)
            self._checked = request.context
        handles = tuple(Handle(on_cancel=self._scheduler.wake) for _ in requests)
        pairs = zip(requests, handles, strict=True)
        if not self._scheduler.submit([self._worker.job(request, handle) for request, handle in pairs]):
            raise self._stopped()
        return handles

    @property
    def occupancy(self) -> tuple[int, int]:
        """How many requests are in the batch, and how many wait for a place in it."""
        return self._scheduler.occupancy

    def close(self) -> None:
        """Stop serving; requests that are not done raise EngineStoppedError. May be called twice."""
        self._scheduler.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _serve(self) -> None:
        try:
            _run(self._scheduler, self._worker, self._pace)
        except BaseException as error:  # noqa: BLE001  (whoever waits must hear of it, whatever it is)
            self._failure = error
        finally:
            self._scheduler.stop(self._stopped())

    def _stopped(self) -> EngineStoppedError:
        if self._failure is None:
            return EngineStoppedError("the engine was closed")
        error = EngineStoppedError(f"the engine's thread failed: {self._failure!r}")
        error.__cause__ = self._failure
        return error


def _run(scheduler: Scheduler[W], worker: Worker[W], pace: Pace) -> None:
    """Serve until the scheduler is closed: the one loop over steps."""
    with torch.inference_mode():
        while scheduler.wait():
            for job in scheduler.expired(worker.clock()):
                with alone(job):
                    worker.expired(job)
            _leave(scheduler.leaving(), worker)
            while (admitted := scheduler.admit(worker.fits)) is not None:
                with alone(admitted):
                    worker.begin(admitted)
            picked, began = scheduler.pick(), worker.clock()
            rows = sum(job.prefill_rows for job in picked)
            worker.step(picked)
            pace.took(rows, worker.clock() - began)
            _leave(scheduler.leaving(), worker)


def _leave(jobs: Iterable[W], worker: Worker[W]) -> None:
    for job in jobs:
        worker.end(job)
