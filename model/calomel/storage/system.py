"""What Linux, macOS and Windows do in different ways: private files, rights, locks, signals, processors.

Both ways are here and nowhere else. Where a system lacks something, what it has in its place is taken: a user's folders
on Windows are kept from others by access lists, which modes say nothing of.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

# With what whoever ends a program by the system's own means stops it.
ENDING: Final = tuple(number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None)
_PRIVATE: Final = 0o600
WINDOWS: Final = os.name == "nt"


def open_private(path: Path | str, flags: int, *, mode: int = _PRIVATE, links: bool = False) -> int:
    """A descriptor of the file at `path`, for `os.open`'s `flags`; a new file is the user's alone.

    A link at the end of `path` is not followed unless `links` says so, where the system can tell; a pipe that somebody
    has put there is not waited for; no other program inherits it. Raises OSError.
    """
    more = ["O_CLOEXEC", "O_NONBLOCK", "O_BINARY", *([] if links else ["O_NOFOLLOW"])]
    for name in more:
        flags |= getattr(os, name, 0)
    return os.open(path, flags, mode)


def keep_private(descriptor: int) -> None:
    """Take others' rights to an open file away, where rights are modes."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, _PRIVATE)


def is_own(status: os.stat_result) -> bool:
    """Whether what `status` is of belongs to this user, as far as the system tells."""
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()


def rights_of_others(status: os.stat_result, rights: int = 0o077) -> bool:
    """Whether others have some of `rights`, where rights are modes."""
    return hasattr(os, "getuid") and bool(status.st_mode & rights)


@contextmanager
def only_one(path: Path, seconds: float = 0.0) -> Iterator[bool]:
    """Whether this program has the lock at `path` for as long as the context is open, and not another one.

    It is waited for so many `seconds`. A lock goes with its process, so no dead one can hold it. Raises OSError where
    the file cannot be made.
    """
    from filelock import FileLock, Timeout  # takes its time

    lock = FileLock(path, timeout=seconds, mode=_PRIVATE, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def alive(pid: int) -> bool | None:
    """Whether there is a process `pid`; None for one that this user may not signal, and where there can be none."""
    if WINDOWS:
        # `os.kill` would end it there.
        return bool(psutil().pid_exists(pid))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return None
    return True


def resident_bytes() -> int:
    """Memory that this process takes now."""
    return int(psutil().Process().memory_info().rss)


def peak_bytes() -> int:
    """The most memory that this process has taken so far."""
    if sys.platform == "win32":
        return int(psutil().Process().memory_info().peak_wset)
    else:  # noqa: RET505 (only so does the checker of another platform leave this out)
        import resource

        # KiB on Linux, bytes on macOS.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def available_bytes() -> int:
    """Memory of the machine that programs may still take; a container's limit is another matter."""
    return int(psutil().virtual_memory().available)


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_average() -> float | None:
    """How many programs wanted a processor in the last minute; None where the system does not say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def behind_others(by: int) -> None:
    """Let other programs go first, where the system has it so."""
    if hasattr(os, "nice"):
        os.nice(by)


def psutil() -> ModuleType:
    """The library, imported when it is needed: an editor's first answer does not wait for it."""
    return import_module("psutil")
