"""Watches event loops during a test: no turn of a loop may take long.

A turn is measured in processor time of the loop's own thread, which a busy machine hardly lengthens, without that of
the garbage collector, which looks at all that the tests before have left. What takes no processor time (a lock, a file,
a sleep) is measured by the clock. A thread beside the loops looks at what they do: so a long turn has a name, and what
a test does in its own coroutine is not counted.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

# Seconds of one turn: of the thread's processor time, and by the clock. Nobody knows how fast the machine is.
LONGEST_WORK: Final = 0.06
LONGEST_WAIT: Final = 0.25
_LOOK_EVERY: Final = 0.005
_TESTS: Final = Path(__file__).parent
# Of a long turn: stacks, and functions of each.
_STACKS, _FUNCTIONS = 3, 12
_RUN: Final = asyncio.Handle._run


@dataclass(slots=True)
class _Turn:
    """What a loop was seen to do: stacks of the program, and how often it was a test's own work."""

    began: float = field(default_factory=time.monotonic)
    stacks: Counter[str] = field(default_factory=Counter)
    own: int = 0

    def look(self, frame: FrameType) -> None:
        if _is_of_a_test(frame):
            self.own += 1
        else:
            self.stacks[_stack(frame)] += 1

    @property
    def share(self) -> float:
        """Of the program in the turn."""
        seen = self.stacks.total() + self.own
        return self.stacks.total() / seen if seen else 1.0

    @property
    def seen_seconds(self) -> float:
        """The program at work or waiting: a machine that is too busy for this is too busy for the thread beside it."""
        return self.stacks.total() * _LOOK_EVERY


@pytest.fixture(autouse=True)
def _short_turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test asks, the event loop goes on with the others meanwhile. For a folder whose conftest names it."""
    seen: list[str] = []
    turns: dict[int, _Turn] = {}
    over = threading.Event()
    collecting: dict[str, float] = {"start": 0.0, "all": 0.0}

    def collected(phase: str, _: object) -> None:
        if phase == "start":
            collecting["start"] = time.thread_time()
        else:
            collecting["all"] += time.thread_time() - collecting["start"]

    def look() -> None:
        while not over.wait(_LOOK_EVERY):
            frames = sys._current_frames()
            for thread, turn in list(turns.items()):
                if time.monotonic() - turn.began > _LOOK_EVERY and thread in frames:
                    turn.look(frames[thread])

    def timed(handle: asyncio.Handle) -> None:
        thread, name, turn = threading.get_ident(), _name(handle), _Turn()
        turns[thread] = turn
        began = time.thread_time() - collecting["all"]
        _RUN(handle)
        work = (time.thread_time() - collecting["all"] - began) * turn.share
        del turns[thread]
        if work > LONGEST_WORK or turn.seen_seconds > LONGEST_WAIT:
            stacks = (f"\n  {count} x {stack}" for stack, count in turn.stacks.most_common(_STACKS))
            seen.append(f"{work * 1e3:.0f} ms of work, {turn.seen_seconds * 1e3:.0f} seen: {name}{''.join(stacks)}")

    watcher = threading.Thread(target=look, name="loop-watch", daemon=True)
    with monkeypatch.context() as patched:
        patched.setattr(asyncio.Handle, "_run", timed)
        gc.callbacks.append(collected)
        watcher.start()
        try:
            yield
        finally:
            gc.callbacks.remove(collected)
            over.set()
            watcher.join()
    assert not seen, "\n".join(seen)


def _is_of_a_test(frame: FrameType) -> bool:
    """Whether the innermost coroutine, or the callback where there is none, is of the tests."""
    while not frame.f_code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        if frame.f_back is None or frame.f_back.f_code is _RUN.__code__:
            break
        frame = frame.f_back
    return Path(frame.f_code.co_filename).is_relative_to(_TESTS)


def _stack(frame: FrameType | None) -> str:
    """The innermost functions, each before its caller."""
    found: list[str] = []
    while frame is not None and len(found) < _FUNCTIONS:
        file = Path(frame.f_code.co_filename)
        found.append(f"{file.parent.name}/{file.name}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(found)


def _name(handle: asyncio.Handle) -> str:
    callback: Any = handle._callback  # type: ignore[attr-defined]
    task = getattr(callback, "__self__", None)
    return repr(task.get_coro()) if isinstance(task, asyncio.Task) else repr(callback)
