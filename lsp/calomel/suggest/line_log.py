"""A log of JSON lines on this machine, only ever appended to, readable by its user alone.

Several editor windows write to the same file: each line is one `write` to a file opened for appending, which the system
does not mix. A full file is renamed by whoever notices first, under a lock; the others see that their file has another
name by now and open the new one.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

LOG: Final = logging.getLogger(__name__)

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class LineLog:
    """Appends lines to a file. Never raises: what cannot be written is counted, and said once.

    Args:
        path: of the newest file; older ones lie beside it as `path.1`, `path.2`, …
        what: is written, as in `Outcomes of suggestions`.
        max_bytes: of one file.
        kept_files: the newest included.
        warn: tells the user, once, that it cannot be written.
    """

    def __init__(
        self, path: Path, *, what: str, max_bytes: int, kept_files: int, warn: Callable[[str], None] = LOG.warning
    ) -> None:
        self.lost = 0
        self._path = path
        self._what = what
        self._max_bytes = max_bytes
        self._kept_files = max(1, kept_files)
        self._warn = warn
        self._lock = threading.Lock()
        self._file: int | None = None
        # A line was written in part: the next one begins with a line end.
        self._torn = False

    def write(self, line: Callable[[], bytes | None]) -> None:
        """Append the line, with its end, that `line` makes; nothing for None."""
        try:
            made = line()
            if made is None:
                return
            with self._lock:
                self._append(made)
        except Exception as error:  # noqa: BLE001 - a log must not stop the typing, whatever happens
            self._lose(error)

    def close(self) -> None:
        """Let go of the file; a later record opens it again."""
        with self._lock:
            self._close()

    def _append(self, line: bytes) -> None:
        file = self._current()
        if os.fstat(file).st_size >= self._max_bytes:
            self._rotate()
            file = self._current()
        data = b"\n" + line if self._torn else line
        self._torn = True
        if os.write(file, data) < len(data):
            raise OSError(0, "written in part")
        self._torn = False

    def _current(self) -> int:
        """The open file, which still has the log's name."""
        if self._file is not None:
            with contextlib.suppress(FileNotFoundError):
                there, here = self._path.stat(follow_symlinks=False), os.fstat(self._file)
                if (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev):
                    return self._file
            self._close()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Not through a link, and without waiting for a reader should somebody have put a pipe there.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._file = os.open(self._path, flags, 0o600)
        status = os.fstat(self._file)
        if not stat.S_ISREG(status.st_mode):
            self._close()
            raise OSError(0, "no plain file")
        if status.st_mode & _OTHERS:
            os.fchmod(self._file, 0o600)
        # Whoever wrote last may have run out of room, or of time.
        self._torn = status.st_size > 0 and os.pread(self._file, 1, status.st_size - 1) != b"\n"
        return self._file

    def _rotate(self) -> None:
        """Rename full files, unless another window does so at the moment or has just done it."""
        with self._rotation() as ours:
            if not ours or not self._is_full():
                return
            for number in range(self._kept_files - 1, 0, -1):
                older = numbered(self._path, number - 1)
                with contextlib.suppress(FileNotFoundError):
                    older.replace(numbered(self._path, number))
            if self._kept_files == 1:
                self._path.unlink()

    def _is_full(self) -> bool:
        """Whether the file of the log's name is; another window may have renamed it, and nobody made a new one yet."""
        try:
            return self._path.stat(follow_symlinks=False).st_size >= self._max_bytes
        except FileNotFoundError:
            return False

    @contextlib.contextmanager
    def _rotation(self) -> Iterator[bool]:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(self._path.with_name(f"{self._path.name}.lock"), flags, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(lock)

    def _close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None

    def _lose(self, error: Exception) -> None:
        self.lost += 1
        if self.lost == 1:
            why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            with contextlib.suppress(Exception):
                self._warn(f"{self._what} cannot be written to {self._path} ({why}).")


def numbered(path: Path, number: int) -> Path:
    """The file of a rotated log; 0 is the newest."""
    return path if number == 0 else path.with_name(f"{path.name}.{number}")
