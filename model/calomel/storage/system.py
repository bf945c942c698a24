"""What differs between Linux, macOS and Windows: private files, permissions, locks, signals, processors.

All variants are here and nowhere else. If a system lacks something, its nearest equivalent is used: on Windows a user's
folders are protected by access lists, which modes do not show.
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
from typing import Any, Final

# Signals with which the system's own means stop a program.
ENDING: Final = tuple(number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None)
_PRIVATE: Final = 0o600
WINDOWS: Final = os.name == "nt"
# Seconds by which the clock of a machine may be set while a process runs.
_CLOCK_SHIFT: Final = 2


def open_private(path: Path | str, flags: int, *, mode: int = _PRIVATE, links: bool = False) -> int:
    """A descriptor of the file at `path`, for `os.open`'s `flags`; a new file is accessible to the user alone.

    A link at the end of `path` is not followed unless `links` says so, if the system can tell; opening a pipe does not
    block; no other program inherits the descriptor. Raises OSError.
    """
    more = ["O_CLOEXEC", "O_NONBLOCK", "O_BINARY", *([] if links else ["O_NOFOLLOW"])]
    for name in more:
        flags |= getattr(os, name, 0)
    return os.open(path, flags, mode)


def keep_private(descriptor: int) -> None:
    """Remove other users' permissions for an open file, where permissions are modes."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, _PRIVATE)


def is_own(status: os.stat_result) -> bool:
    """Whether the file of `status` belongs to this user, as far as the system tells."""
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()


def rights_of_others(status: os.stat_result, rights: int = 0o077) -> bool:
    """Whether other users have some of the permissions `rights`, where permissions are modes."""
    return hasattr(os, "getuid") and bool(status.st_mode & rights)


@contextmanager
def only_one(path: Path, seconds: float = 0.0) -> Iterator[bool]:
    """Whether this program, and no other, has the lock at `path` while the context is open.

    It waits up to `seconds` for the lock. A lock ends with its process, so no dead one can hold it. Raises OSError if
    the file cannot be created.
    """
    from filelock import FileLock, Timeout  # slow to import

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


def process_of(pid: int, started: int = 0) -> Any | None:
    """The process `pid`, as `psutil.Process`; None if it does not run, or if another one that has its number now does.

    Args:
        pid: its number.
        started: when it started, see `start_of`; 0 if that is unknown.
    """
    library = psutil()
    try:
        process = library.Process(pid)
        if process.status() == library.STATUS_ZOMBIE:
            return None
    except library.NoSuchProcess:
        return None
    except library.AccessDenied:
        pass
    return process if not started or abs(start_of(pid) - started) <= _CLOCK_SHIFT else None


def start_of(pid: int) -> int:
    """When a process started, in seconds since the epoch; 0 if the system does not tell."""
    library = psutil()
    try:
        return int(library.Process(pid).create_time())
    except library.Error:
        return 0


def resident_bytes() -> int:
    """Memory that this process uses now."""
    return int(psutil().Process().memory_info().rss)


def peak_bytes() -> int:
    """The most memory that this process has used so far."""
    if sys.platform == "win32":
        return int(psutil().Process().memory_info().peak_wset)
    else:  # noqa: RET505 (without it the type checker of another platform would not skip this)
        import resource

        # KiB on Linux, bytes on macOS.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def available_bytes() -> int:
    """Memory of the machine that is still available; a container's limit is not considered."""
    return int(psutil().virtual_memory().available)


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_average() -> float | None:
    """How many programs wanted a processor in the last minute; None if the system does not say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def behind_others(by: int) -> None:
    """Give other programs priority, if the system supports that."""
    if hasattr(os, "nice"):
        os.nice(by)


def psutil() -> ModuleType:
    """The library, imported when it is needed, so that an editor's first answer does not wait for it."""
    return import_module("psutil")
