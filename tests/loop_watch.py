"""Watches event loops during a test: no turn of a loop may take long.

A turn is measured in processor time of the loop's own thread, which a busy machine hardly lengthens, without that of
the garbage collector, which looks at all that the tests before have left. A turn that imports a module does so once in
a program's life, and is passed over; so is a turn of a test's own coroutine.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# Twenty milliseconds are the rule, and in steady state they hold on a machine that has nothing else to do. Where tests
# run side by side and share cores and their caches, the same work takes several times the processor time.
LONGEST_TURN = 0.1


@contextmanager
def watched_loops(monkeypatch: pytest.MonkeyPatch, longest: float = LONGEST_TURN) -> Iterator[list[str]]:
    """A list that gets every turn of any event loop beyond `longest` seconds, with what ran in it."""
    seen: list[str] = []
    run = asyncio.Handle._run

    collecting: dict[str, float] = {"start": 0.0, "all": 0.0}

    def collected(phase: str, _: object) -> None:
        if phase == "start":
            collecting["start"] = time.thread_time()
        else:
            collecting["all"] += time.thread_time() - collecting["start"]

    def timed(handle: asyncio.Handle) -> None:
        name = _name(handle)
        modules, began = len(sys.modules), time.thread_time() - collecting["all"]
        run(handle)
        took = time.thread_time() - collecting["all"] - began
        if took > longest and len(sys.modules) == modules and "<locals>" not in name:
            seen.append(f"{took * 1e3:.0f} ms: {name}")

    with monkeypatch.context() as patched:
        patched.setattr(asyncio.Handle, "_run", timed)
        gc.callbacks.append(collected)
        try:
            yield seen
        finally:
            gc.callbacks.remove(collected)


def _name(handle: asyncio.Handle) -> str:
    callback: Any = handle._callback  # type: ignore[attr-defined]
    task = getattr(callback, "__self__", None)
    return repr(task.get_coro()) if isinstance(task, asyncio.Task) else repr(callback)
