"""Who takes part in the next step: requests join and leave between steps.

Requests wait in order of priority, then of arrival. A step serves only the most urgent priority that has work; those of
the others keep what they have and go on afterwards. Prefill is cut into chunks, `prefill_chunk` rows a step in all, so
that it is cancelled or overtaken within one.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import Generic

from calomel.engine.errors import EngineError, RequestCancelledError
from calomel.engine.request import Priority
from calomel.engine.worker import W


class Scheduler(Generic[W]):
    """The queue between callers and the engine's thread. `submit`, `wake` and `close` may be called from anywhere."""

    def __init__(self, *, max_batch: int, prefill_chunk: int, prefill_unit: int = 1) -> None:
        self._max_batch = max_batch
        self._prefill_chunk = prefill_chunk
        self._prefill_unit = prefill_unit
        self._changed = threading.Condition()
        self._waiting: list[tuple[Priority, int, W]] = []
        self._running: list[W] = []
        self._arrival = itertools.count()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def submit(self, jobs: Sequence[W]) -> bool:
        """Queue `jobs`; False when the scheduler is closed."""
        with self._changed:
            if self._closed:
                return False
            self._waiting += [(job.request.priority, next(self._arrival), job) for job in jobs]
            self._waiting.sort(key=lambda entry: entry[:2])
            self._changed.notify_all()
            return True

    def wake(self) -> None:
        """Look again: a request was cancelled."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """End `wait`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def occupancy(self) -> tuple[int, int]:
        """How many requests are in the batch, and how many wait for a place in it."""
        with self._changed:
            return len(self._running), len(self._waiting)

    def wait(self) -> bool:
        """Block until there is a request to serve; False once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._running or self._waiting)
            return not self._closed

    def expired(self, now: float) -> Iterator[W]:
        """Jobs that are not done and whose deadline is before `now` (`time.monotonic` seconds)."""
        with self._changed:
            jobs = [*self._running, *(job for _, _, job in self._waiting)]
        for job in jobs:
            deadline = job.request.deadline
            if deadline is not None and now >= deadline and not job.handle.done and not job.handle.cancelled:
                yield job

    def leaving(self) -> list[W]:
        """Remove and return the jobs that are done or cancelled."""
        with self._changed:
            jobs = [*self._running, *(job for _, _, job in self._waiting)]
            for job in jobs:
                if job.handle.cancelled:
                    job.handle.settle(RequestCancelledError("the request was cancelled"))
            self._running = [job for job in self._running if not job.handle.done]
            self._waiting = [entry for entry in self._waiting if not entry[2].handle.done]
        return [job for job in jobs if job.handle.done]

    def admit(self) -> list[W]:
        """Move waiting jobs into free places, `max_batch` of each priority, and return them."""
        admitted: list[W] = []
        with self._changed:
            for entry in list(self._waiting):
                job = entry[2]
                if sum(other.request.priority == job.request.priority for other in self._running) < self._max_batch:
                    self._waiting.remove(entry)
                    self._running.append(job)
                    admitted.append(job)
        return admitted

    def pick(self) -> list[W]:
        """The jobs of the next step, with the prefill rows of each."""
        jobs = [job for job in self._running if not job.handle.done]
        if not jobs:
            return []
        urgent = min(job.request.priority for job in jobs)
        budget, picked = self._prefill_chunk, []
        for job in jobs:
            if job.request.priority != urgent:
                continue
            job.prefill_rows = min(job.prefill_left, budget - budget % self._prefill_unit)
            if job.prefill_left and not job.prefill_rows:
                continue
            budget -= job.prefill_rows
            picked.append(job)
        return picked

    def stop(self, error: EngineError) -> None:
        """Close, and end every job that is not done by `error`."""
        self.close()
        with self._changed:
            jobs = [*self._running, *(job for _, _, job in self._waiting)]
            self._running, self._waiting = [], []
        for job in jobs:
            job.handle.settle(error)
