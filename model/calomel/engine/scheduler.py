"""Who takes part in the next step: requests join and leave between steps.

Requests wait in order of priority, then of arrival. A step serves only the most urgent priority that has work; those of
the others keep what they have and go on afterwards. Prefill is cut into chunks, of as many rows a step in all as the
pace allows, so that it is cancelled or overtaken within one. Whose context is shortest is encoded first, but a part of
every chunk is the oldest request's: a short one does not wait for a long one, and a long one comes to its end.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import Final, Generic

from calomel.engine.errors import EngineError, RequestCancelledError
from calomel.engine.pace import Pace
from calomel.engine.request import Priority
from calomel.engine.worker import W

# Of every chunk, one part in so many is the oldest request's.
_OLDEST: Final = 4


class Scheduler(Generic[W]):
    """The queue between callers and the engine's thread. `submit`, `wake` and `close` may be called from anywhere."""

    def __init__(self, *, max_batch: int, pace: Pace, prefill_unit: int = 1) -> None:
        self._max_batch = max_batch
        self._pace = pace
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
        jobs = [job for job in jobs if job.request.priority == urgent]
        # Whoever asks something urgent waits for what is done in the background.
        alone = len(jobs) == 1 and urgent == Priority.INTERACTIVE
        self._share(jobs, self._pace.chunk(alone=alone))
        return [job for job in jobs if job.prefill_rows or not job.prefill_left]

    def _share(self, jobs: Sequence[W], budget: int) -> None:
        """Give the jobs that encode their context their rows of a chunk of `budget`."""
        encoding = []
        for job in jobs:
            job.prefill_rows = 0
            if job.prefill_left:
                encoding.append(job)
        for job in encoding[:1]:
            part = budget if len(encoding) == 1 else max(budget // _OLDEST, self._prefill_unit)
            budget -= self._give(job, part)
        for job in sorted(encoding, key=lambda job: job.prefill_left):
            budget -= self._give(job, budget)

    def _give(self, job: W, rows: int) -> int:
        """Add as many of `rows` to those of `job` as it needs, and return how many."""
        given = min(job.prefill_left - job.prefill_rows, rows - rows % self._prefill_unit)
        job.prefill_rows += given
        return given

    def stop(self, error: EngineError) -> None:
        """Close, and end every job that is not done by `error`."""
        self.close()
        with self._changed:
            jobs = [*self._running, *(job for _, _, job in self._waiting)]
            self._running, self._waiting = [], []
        for job in jobs:
            job.handle.settle(error)
