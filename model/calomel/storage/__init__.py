"""Writes files whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

from calomel.storage.system import open_private


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


def read_regular(path: Path | str, most: int) -> bytes:
    """The first bytes of a regular file, at most so many.

    Raises OSError for anything else: a pipe keeps its reader waiting, and a device has no end.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read(most)


def read_object(path: Path, error: type[Exception]) -> dict[str, Any]:
    """The JSON object at `path`; empty if there is no such file. Raises `error` for a damaged one."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as fault:
        raise error(f"{path} is not valid JSON: {fault}") from fault
    if not isinstance(found, dict):
        raise error(f"{path} is not valid JSON: it holds no object")
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
