"""The engine: a thread that serves requests with one decoder, whatever its model and how it denoises.

A request's life: `submit` checks it in the caller's thread and queues it; the scheduler admits it; the decoder advances
it one step at a time, together with other requests, until it has settled the handle.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

import torch

from calomel.engine.checking import check
from calomel.engine.decoder import Decoder, Work
from calomel.engine.errors import DeadlineExceededError, EngineStoppedError, InvalidRequestError
from calomel.engine.handle import Handle
from calomel.engine.job import Job, alone
from calomel.engine.request import Request
from calomel.engine.scheduler import Pace, Scheduler

# Seconds that a step of another request waits for a chunk.
_PREFILL_SECONDS: Final = 0.03


class Engine:
    """Serves requests with one decoder, from a thread of its own.

    Args:
        decoder: does the work of a step.
        max_batch: requests of one priority that are served at a time.
        prefill_seconds: chunks become shorter if one takes longer while other requests are served; None for never.

    Attributes:
        config: of the model.
        decoder: see above.
    """

    def __init__(
        self,
        decoder: Decoder[Any, Any, Any],
        *,
        max_batch: int = 8,
        prefill_seconds: float | None = _PREFILL_SECONDS,
    ) -> None:
        if max_batch < 1:
            raise InvalidRequestError(f"max_batch is {max_batch}; it must be at least 1")
        if prefill_seconds is not None and not prefill_seconds > 0:
            raise InvalidRequestError(f"prefill_seconds is {prefill_seconds}; it must be above 0")
        self.config = decoder.config
        self.decoder = decoder
        self._pace = Pace(most=decoder.prefill_chunk, unit=decoder.diffusion.block, seconds=prefill_seconds)
        self._scheduler = Scheduler(max_batch=max_batch, pace=self._pace)
        self._failure: BaseException | None = None
        # The context of the last request: the next one is usually the same plus a letter.
        self._checked: tuple[int, ...] = ()
        self._thread = threading.Thread(target=self._serve, name="calomel-engine", daemon=True)
        self._thread.start()

    def submit(self, request: Request) -> Handle:
        """Queue `request` and return at once.

        Raises:
            InvalidRequestError: a field is wrong; the subclass and the message say which.
            EngineStoppedError: the engine was closed, or its thread failed.
        """
        (handle,) = self.submit_all((request,))
        return handle

    def submit_all(self, requests: Sequence[Request]) -> tuple[Handle, ...]:
        """Queue `requests` together, so that none of them gets a forward before the others.

        Raises:
            InvalidRequestError: a field of one of them is wrong; nothing is queued.
            EngineStoppedError: the engine was closed, or its thread failed.
        """
        for request in requests:
            check(request, self.config, self._checked)
            self._checked = request.context
        handles = tuple(Handle(on_cancel=self._scheduler.wake) for _ in requests)
        pairs = zip(requests, handles, strict=True)
        if not self._scheduler.submit([self.decoder.job(request, handle) for request, handle in pairs]):
            raise self._stopped()
        return handles

    @property
    def occupancy(self) -> tuple[int, int]:
        """How many requests are in the batch, and how many wait for a place in it."""
        return self._scheduler.occupancy

    @property
    def work(self) -> Work:
        """What was done so far."""
        return self.decoder.work

    def close(self) -> None:
        """Stop serving; unfinished requests raise EngineStoppedError. May be called twice."""
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
            with torch.inference_mode():
                while self._scheduler.wait():
                    self._step()
        except BaseException as error:  # noqa: BLE001  (every waiting caller must get it)
            self._failure = error
        finally:
            self._scheduler.stop(self._stopped())

    def _step(self) -> None:
        """One step: answer jobs past their deadline, remove and admit jobs, and step those picked."""
        scheduler, decoder = self._scheduler, self.decoder
        for job in scheduler.expired(decoder.clock()):
            with alone(job.handle):
                self._answer_in_time(job)
        self._let_go()
        while (admitted := scheduler.admit(decoder.fits)) is not None:
            with alone(admitted.handle):
                decoder.begin(admitted)
        picked, began = scheduler.pick(), decoder.clock()
        rows = sum(job.prefill_rows for job in picked)
        decoder.step(picked)
        self._pace.took(rows, decoder.clock() - began)
        self._let_go()

    def _answer_in_time(self, job: Job[Any, Any, Any]) -> None:
        """The deadline has passed: what is known without a gap is the answer."""
        if not job.forwards:
            raise DeadlineExceededError(
                "the deadline passed before the first step; allow more time or a shorter context"
            )
        self.decoder.take_known(job)
        self.decoder.finish(job, "stop" if job.end_log_prob is not None else "deadline")

    def _let_go(self) -> None:
        for job in self._scheduler.leaving():
            self.decoder.end(job)

    def _stopped(self) -> EngineStoppedError:
        if self._failure is None:
            return EngineStoppedError("the engine has closed")
        error = EngineStoppedError(f"the engine's thread failed: {self._failure!r}")
        error.__cause__ = self._failure
        return error
