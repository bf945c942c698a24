"""How a training run is told to end: SIGINT and SIGTERM, as an attribute to look at between two steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_signals(stop: Callable[..., None]) -> Iterator[None]:
    """Call `stop` when the process is interrupted or terminated; only a main thread can be told."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
