"""A signal's handler, kept while a library puts its own in its place."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any, Final

# More than a `struct sigaction` of any system takes; nobody looks into it.
_ROOM: Final = 1024


@contextlib.contextmanager
def kept_signal(number: int) -> Iterator[None]:
    """Give signal `number` back the handler that the process has for it now, when the context ends.

    Python sets handlers in its main thread alone; the C library (sigaction(2)) in any. Where there is none, nothing is
    kept.
    """
    try:
        library: Any = ctypes.CDLL(None)
        sigaction = library.sigaction
    except (OSError, AttributeError, TypeError):
        yield
        return
    kept = ctypes.create_string_buffer(_ROOM)
    known = sigaction(number, None, kept) == 0
    try:
        yield
    finally:
        if known:
            sigaction(number, kept, None)
