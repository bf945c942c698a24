"""Which requests take part in the next step: they join and leave between steps.

Requests wait in order of priority; within one priority, the client with the fewest running requests is next, then first
come, first served. A step serves only the most urgent priority that has work; other requests keep their state and go on
afterwards. Each client gets an equal share of a step, of its requests and of its prefill: a client with many requests
slows down nobody else. A client without a running request gets one even if all usual places are taken, and so does one
whose running requests are all for long answers: what is asked at a key does not wait for a hundred streams.

Prefill is cut into chunks, with as many rows per step in total as the pace allows, so that it can be cancelled or
overtaken after any chunk. The shortest remaining context is encoded first, but a part of every chunk goes to the oldest
request: a short one does not wait for a long one, and a long one gets done.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from calomel.engine.errors import EngineError, RequestCancelledError
from calomel.engine.job import Job
from calomel.engine.request import Priority

# A forward of fewer rows is hardly faster: weights are read, kernels are launched.
_LEAST: Final = 32
# A single fast step, such as one whose keys were all cached, must not make the next one wait.
_GROWTH: Final = 1.5
# Before anything is measured, a chunk is this fraction of the largest one.
_FIRST: Final = 4
# One part in this many of every chunk goes to the oldest request.
_OLDEST: Final = 4
# Times the batch: how many requests of each priority may have begun, if that many clients ask.
_PLACES: Final = 2
# Tokens of an answer that somebody waits for at a key; the editors ask for 64.
_BRIEF: Final = 128


class Pace:
    """The size of the next chunk.

    Args:
        most: tokens per chunk at most.
        unit: chunks are multiples of it, and at least one unit.
        seconds: how long others wait for a chunk; None for as long as `most` tokens take.
    """

    def __init__(self, *, most: int, unit: int = 1, seconds: float | None) -> None:
        self._most = max(most, unit)
        self.unit = unit
        self._seconds = seconds
        self._rate: float | None = None

    def chunk(self, *, alone: bool) -> int:
        """Tokens of the next chunk; `most` for a request that is alone: the next one mostly has the same context."""
        if self._seconds is None or alone:
            return self._most
        fitting = self._most / _FIRST if self._rate is None else self._rate * self._seconds
        rows = int(min(self._most, max(fitting, _LEAST)))
        return max(rows - rows % self.unit, self.unit)

    def took(self, rows: int, seconds: float) -> None:
        """A step that encoded `rows` tokens took `seconds`."""
        if not rows or seconds <= 0:
            return
        rate = rows / seconds
        # Slow down at once, speed up gradually; a short chunk takes longer per row than a long one, and says less.
        if self._rate is None or rate < self._rate:
            enough = self._rate is None or rows >= _LEAST
            self._rate = rate if enough else self._rate
        else:
            self._rate = min(rate, self._rate * _GROWTH)


Served: TypeAlias = Job[Any, Any, Any]


def _is_brief(job: Served) -> bool:
    return bool(job.request.max_new_tokens <= _BRIEF)


class Scheduler:
    """The queue between callers and the engine's thread. `submit`, `wake` and `close` may be called from any thread.

    Args:
        max_batch: requests per step at most, and places per priority.
        pace: how much context a step encodes.
    """

    def __init__(self, *, max_batch: int, pace: Pace) -> None:
        self._max_batch = max_batch
        self._pace = pace
        self._changed = threading.Condition()
        self._waiting: list[tuple[Priority, int, Served]] = []
        self._running: list[Served] = []
        self._arrival = itertools.count()
        self._steps = itertools.count(1)
        # When each running job last took part in a step.
        self._served: dict[Served, int] = {}
        self._closed = False

    def submit(self, jobs: Sequence[Served]) -> bool:
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

    def expired(self, now: float) -> Iterator[Served]:
        """Unfinished jobs whose deadline is before `now` (`time.monotonic` seconds)."""
        with self._changed:
            jobs = [*self._running, *(job for _, _, job in self._waiting)]
        for job in jobs:
            deadline = job.request.deadline
            if deadline is not None and now >= deadline and not job.handle.done and not job.handle.cancelled:
                yield job

    def leaving(self) -> list[Served]:
        """Remove and return the jobs that are done or cancelled."""
        with self._changed:
            jobs = [*self._running, *(job for _, _, job in self._waiting)]
            for job in jobs:
                if job.handle.cancelled:
                    job.handle.settle(RequestCancelledError("the request was cancelled"))
            self._running = [job for job in self._running if not job.handle.done]
            self._waiting = [entry for entry in self._waiting if not entry[2].handle.done]
        return [job for job in jobs if job.handle.done]

    def admit(self, fits: Callable[[Served], bool] = lambda _: True) -> Served | None:
        """Move the next waiting job into a free place and return it; None if no job can be admitted.

        Args:
            fits: whether there is room for a job besides the running ones.
        """
        with self._changed:
            held = Counter((job.request.priority, job.request.client) for job in self._running)
            brief = {(job.request.priority, job.request.client) for job in self._running if _is_brief(job)}
            taken = Counter(job.request.priority for job in self._running)
            for entry in sorted(self._waiting, key=lambda entry: (entry[0], held[entry[0], entry[2].request.client])):
                priority, _, job = entry
                whose = priority, job.request.client
                first = not held[whose] or (_is_brief(job) and whose not in brief)
                places = self._max_batch * (_PLACES if first else 1)
                if taken[priority] < places and fits(job):
                    self._waiting.remove(entry)
                    self._running.append(job)
                    return job
        return None

    def pick(self) -> list[Served]:
        """The jobs of the next step, with the prefill rows of each."""
        jobs = [job for job in self._running if not job.handle.done]
        if not jobs:
            return []
        urgent = min(job.request.priority for job in jobs)
        turn = self._turn([job for job in jobs if job.request.priority == urgent])
        jobs = [job for job in jobs if job in turn]
        # A large chunk of background work would hold up the next urgent request.
        alone = len(jobs) == 1 and urgent == Priority.INTERACTIVE
        step = next(self._steps)
        self._share(jobs, self._pace.chunk(alone=alone), step)
        picked = [job for job in jobs if job.prefill_rows or not job.prefill_left]
        self._served = {job: self._served.get(job, 0) for job in self._running} | dict.fromkeys(picked, step)
        return picked

    def _turn(self, jobs: Sequence[Served]) -> set[Served]:
        """The jobs whose turn it is: equally many per client, the least recently served first."""
        by_client: defaultdict[str, list[Served]] = defaultdict(list)
        for job in sorted(jobs, key=lambda job: self._served.get(job, 0)):
            by_client[job.request.client].append(job)
        each = -(-self._max_batch // len(by_client))
        # One per client, then a second one per client, and so on.
        rounds = itertools.zip_longest(*(mine[:each] for mine in by_client.values()))
        return set(itertools.islice((job for jobs in rounds for job in jobs if job is not None), self._max_batch))

    def _share(self, jobs: Sequence[Served], budget: int, step: int) -> None:
        """Give the jobs that encode their context their rows of a chunk of `budget`: first each client its share.

        If there are fewer units than clients, or than parts, they take turns.
        """
        by_client: defaultdict[str, list[Served]] = defaultdict(list)
        for job in jobs:
            job.prefill_rows = 0
            if job.prefill_left:
                by_client[job.request.client].append(job)
        each = max(budget // max(len(by_client), 1), self._pace.unit)
        for mine in sorted(by_client.values(), key=lambda mine: max(self._served.get(job, 0) for job in mine)):
            left = min(budget, each)
            part = left if len(mine) == 1 else left // _OLDEST
            if part < self._pace.unit and step - self._served.get(mine[0], 0) >= _OLDEST:
                part = min(left, self._pace.unit)
            given = self._give(mine[0], part)
            budget -= given + self._give_shortest(mine, left - given)
        self._give_shortest([job for mine in by_client.values() for job in mine], budget)  # what others do not need

    def _give_shortest(self, jobs: Sequence[Served], rows: int) -> int:
        """Give `rows` to the jobs that need least, and return how many were taken."""
        left = rows
        for job in sorted(jobs, key=lambda job: job.prefill_left):
            left -= self._give(job, left)
        return rows - left

    def _give(self, job: Served, rows: int) -> int:
        """Add as many of `rows` to those of `job` as it needs, and return how many."""
        given = min(job.prefill_left - job.prefill_rows, rows - rows % self._pace.unit)
        job.prefill_rows += given
        return given

    def stop(self, error: EngineError) -> None:
        """Close, and end every unfinished job with `error`."""
        self.close()
        with self._changed:
            jobs = [*self._running, *(job for _, _, job in self._waiting)]
            self._running, self._waiting = [], []
        for job in jobs:
            job.handle.settle(error)
