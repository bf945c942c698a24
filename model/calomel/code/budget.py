"""A limit of what reading one text may compute: when it is spent, the work ends wherever it is.

Texts differ: what takes a millisecond in most takes minutes in a generated table. So whoever loops over places, lines
or nodes of a text calls `check`, and whoever asks for the work runs it in a `Budget`, and knows what to do without it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class SpentError(Exception):
    """The budget is spent, or nobody waits for the result any more."""


class Budget:
    """What one piece of work may compute.

    Args:
        seconds: of its thread's processor time, so that a busy machine takes nothing away.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = 0.0
        self._stopped = False

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do `work` in this thread. Raises SpentError, unless a narrower budget around it is spent first."""
        self._until = time.thread_time() + self._seconds
        token = _BUDGET.set(self)
        try:
            check()
            return work(*args, **kwargs)
        finally:
            _BUDGET.reset(token)

    def stop(self) -> None:
        """End the work soon, from any thread: nobody waits for it any more."""
        self._stopped = True

    @property
    def spent(self) -> bool:
        """Whether the work has to end."""
        return self._stopped or time.thread_time() > self._until


_BUDGET: Final[ContextVar[Budget | None]] = ContextVar("budget", default=None)


def spent() -> bool:
    """Whether the budget of the work that calls this is spent; without one it never is."""
    budget = _BUDGET.get()
    return budget is not None and budget.spent


def check() -> None:
    """Raise SpentError if the budget of the work that calls this is spent."""
    if spent():
        raise SpentError


async def in_thread(seconds: float, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do `work` in another thread, until the task that awaits it is cancelled. Raises SpentError."""
    budget = Budget(seconds)
    try:
        return await asyncio.to_thread(lambda: budget.run(work, *args, **kwargs))
    finally:
        budget.stop()
