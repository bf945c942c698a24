"""The process of a run: its memory, the signals that end it, and what it shows."""

from __future__ import annotations

import ctypes
import platform
import signal
import threading
from typing import Any, Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_LARGEST_INT: Final = 2**31 - 1
_TOP_PAD_BYTES: Final = 256 * 2**20


def keep_freed_memory() -> bool:
    """Set glibc's allocator for the rest of this process; False where there is another C library."""
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _LARGEST_INT), (_TOP_PAD, _TOP_PAD_BYTES))
    return all(mallopt(name, value) for name, value in settings)


class Interruption:
    """Whether the process was asked to end (SIGINT, SIGTERM): behind the step in progress; asked again, at once.

    It hears while it is entered, and in a main thread only.

    Attributes:
        asked: to be looked at between two steps.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def progress_bar(console: Console) -> Progress:
    """What a run shows of how far it is, on a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.1f} %"))
    return Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)
