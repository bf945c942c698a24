"""Writes files whole or not at all; and what differs between Linux, macOS and Windows: permissions, locks, signals."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Final

# Signals with which the system's own means stop a program.
ENDING: Final = tuple(number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None)
_PRIVATE: Final = 0o600
WINDOWS: Final = os.name == "nt"
# Of a file that is read whole, such as a configuration or a record; they have some kilobytes.
MOST_BYTES: Final = 16 * 1024 * 1024
# Of a tokenizer or an index of weights; the largest published ones have some 35 million.
MOST_TABLE_BYTES: Final = 128 * 1024 * 1024
# Of a log, or of a file of stories or answers, read or unpacked; far above any of them.
MOST_DATA_BYTES: Final = 512 * 1024 * 1024
# Seconds by which the clock of a machine may be set while a process runs, where starts are told by it.
_CLOCK_SHIFT: Final = 2
_BOOT: Final = "/proc/sys/kernel/random/boot_id"
# The place of the start among the fields behind the program's name (proc_pid_stat(5)).
_STARTED: Final = 19


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


def why_exposed(status: os.stat_result) -> str | None:
    """Why a file is not private enough for a token; None if it is."""
    if not is_own(status) and status.st_uid:
        return "belongs to another user"
    # A group may read it: that is how services get credentials.
    if rights_of_others(status, stat.S_IRWXO | stat.S_IWGRP):
        return "is open to other users: chmod 600 it"
    return None


class SecretFileError(Exception):
    """A file of secrets cannot be used; the message names it and says why, never what is in it."""


_MOST_SECRET_BYTES: Final = 1024 * 1024


def read_secret(path: Path, what: str) -> str:
    """The ASCII text of a small file that nobody else may read; `what` it is, for messages.

    Raises FileNotFoundError, SecretFileError.
    """
    try:
        descriptor = open_private(path, os.O_RDONLY, links=True)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SecretFileError(f"cannot read {what} {path} ({error.strerror})") from None
    try:
        status = os.fstat(descriptor)
        problem = why_exposed(status) if stat.S_ISREG(status.st_mode) else "is not a regular file"
        if problem is not None:
            raise SecretFileError(f"{what} {path} {problem}")
        data = os.read(descriptor, _MOST_SECRET_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > _MOST_SECRET_BYTES or not data.isascii():
        raise SecretFileError(f"{what} {path} is not a short ASCII text")
    return data.decode()


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
    """A number that stands for the time a process started, whatever the clock is set to; 0 if the system does not tell.

    Linux knows this time from the boot on, and psutil would add that of the boot by today's clock: 100ths of a second,
    after the first half of the boot's id. Elsewhere, seconds since the epoch.
    """
    if Path(_BOOT).exists():
        with contextlib.suppress(OSError, ValueError, IndexError):
            boot = int(Path(_BOOT).read_text(encoding="ascii")[:7], 16)
            # The name of the program, in brackets, may hold anything.
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            return boot << 34 | int(fields[_STARTED]) & (1 << 34) - 1
        return 0
    library = psutil()
    try:
        return int(library.Process(pid).create_time())
    except library.Error:
        return 0


def resident_bytes() -> int:
    """Memory that this process uses now."""
    return int(psutil().Process().memory_info().rss)


def give_back_memory() -> None:
    """Return memory that was freed to the system, where the C library can be told to (glibc). Takes milliseconds."""
    import ctypes  # rarely needed

    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


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


def write_whole(path: Path, data: str | bytes, *, mode: int | None = None) -> None:
    """Write `data` to `path`, whose folder exists; text as UTF-8.

    If anything fails or the machine stops, the file has either its old contents or all of `data`. A link is followed
    and stays one; anything but a plain file (`/dev/stdout`, a pipe) is written to directly.

    Args:
        path: of the file.
        data: the new contents.
        mode: permissions of the file; by default those of the existing file, or a new file's.

    Raises:
        OSError: it cannot be written; names `path`.
    """
    raw = data.encode() if isinstance(data, str) else data
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(raw)
        else:
            _replace(target, raw, mode)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


@contextmanager
def open_regular(path: Path | str) -> Iterator[BinaryIO]:
    """A regular file, for reading.

    Raises OSError for anything else: a pipe keeps its reader waiting, and a device has no end.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    # Before Python has it: its error for a folder names the number in place of the path.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read_regular(path: Path | str, most: int) -> bytes:
    """The first bytes of a regular file, at most so many. Raises OSError as `open_regular` does."""
    with open_regular(path) as file:
        return file.read(most)


def read_whole(path: Path | str, most: int = MOST_BYTES) -> bytes:
    """A regular file of at most so many bytes. Raises OSError as `open_regular` does, and for a larger one."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"it is larger than {most // 2**20} MiB", str(path))
        return file.read(most)


def read_object(path: Path, error: type[Exception], most: int = MOST_BYTES) -> dict[str, Any]:
    """The JSON object at `path`; empty if there is no such file. Raises `error` for a damaged or huge one."""
    try:
        found = json.loads(read_whole(path, most).decode("utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as fault:
        raise error(f"cannot read {path}: {fault.strerror or fault}") from fault
    except RecursionError as fault:
        raise error(f"{path} is not valid JSON: it is nested too deeply") from fault
    except ValueError as fault:
        raise error(f"{path} is not valid JSON: {fault}") from fault
    if not isinstance(found, dict):
        raise error(f"{path} is not valid JSON: it is not an object")
    return found


def _replace(target: Path, raw: bytes, mode: int | None) -> None:
    if mode is None and target.exists():
        mode = target.stat().st_mode & 0o777
    draft = target.with_name(f".{target.name[:128]}.{os.urandom(6).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        # No more permissions than it will have, from the first byte on.
        with os.fdopen(open_private(draft, flags, mode=0o666 if mode is None else mode), "wb") as file:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    # Some file systems cannot sync a folder; the file itself is complete there, too.
    with contextlib.suppress(OSError):
        folder = open_private(target.parent, os.O_RDONLY, links=True)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
