"""Keep freed memory for the next step of a training run, where the C library is glibc.

A step on a CPU frees tensors of dozens of megabytes and asks for as many again. glibc gives such blocks back to the
system at once, and the next one is filled with zeros page by page: an eighth of a step. See mallopt(3).
"""

from __future__ import annotations

import ctypes
import platform
from typing import Final

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
