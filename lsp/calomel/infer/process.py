"""Logging threads that end with an exception, and checking whether a process still runs."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from calomel.storage import alive

_PROC: Final = Path("/proc")
# Fields of /proc/PID/stat after the command name, which is in parentheses and may contain anything (proc(5)).
_STATE: Final = 0
_START_TIME: Final = 19
_ENDED: Final = frozenset({"Z", "X", "x"})


@contextmanager
def dead_threads_logged(log: logging.Logger) -> Iterator[None]:
    """While the context is open, log each thread that ends with an exception.

    Python's default hook also prints the message, which may quote the user's text.
    """

    def died(args: threading.ExceptHookArgs) -> None:
        last = traceback.extract_tb(args.exc_traceback)[-1]
        name = "?" if args.thread is None else args.thread.name
        place = f"{Path(last.filename).name}:{last.lineno}"
        log.error("the thread %s ended with %s at %s", name, args.exc_type.__name__, place)

    before, threading.excepthook = threading.excepthook, died
    try:
        yield
    finally:
        threading.excepthook = before


def started(pid: int, proc: Path = _PROC) -> int:
    """When the process started, in clock ticks since boot; 0 if the system does not say."""
    fields = _stat(pid, proc)
    return 0 if fields is None else int(fields[_START_TIME])


def runs(pid: int, start: int, proc: Path = _PROC) -> bool:
    """Whether the process `pid` that started at `start` (0: unknown) still runs and may be signalled by this user.

    A zombie does not run.
    """
    if not alive(pid):
        return False
    fields = _stat(pid, proc)
    if fields is None:
        return True
    if fields[_STATE] in _ENDED:
        return False
    return start in {0, int(fields[_START_TIME])}


def _stat(pid: int, proc: Path) -> list[str] | None:
    try:
        text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) > _START_TIME else None
