"""The file in which a running server publishes its address and token for the editors of the same user.

Only that user can read the file, and only that user's file is trusted: folder and file must belong to the user and be
closed to everybody else, and links are not followed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from msgspec import Meta

from calomel.infer.wire import FieldError, read_json
from calomel.storage import is_own, open_private, process_of, rights_of_others

_NAME: Final = "server.json"
_NAME_CHARACTERS: Final = 16
# The family of Unix sockets; None on a system without them.
UNIX: Final[Any] = getattr(socket, "AF_UNIX", None)
# The least of all systems, without the zero at the end (unix(4) of macOS).
MOST_SOCKET_BYTES: Final = 103
_MAX_BYTES: Final = 64 * 1024
_Text = Annotated[str, Meta(max_length=4096)]


class RuntimeFileError(Exception):
    """The file cannot be written, or must not be trusted; the message says why and never contains a token."""


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """One running server.

    Attributes:
        url: `http://host:port`, or `unix:` and the path of a socket.
        token: that clients must send; None if it needs none.
        pid: of its process.
        started: when that process started (`calomel.storage.start_of`); 0 if unknown. Process ids are reused; the pair
            of both is not.
        model: checkpoint folder, for people; None for the shipped one.
        weights: `calomel.weights.weights_id` of that folder; empty if it could not be read.
        device: `cpu`, `cuda`, `cuda:N` or `mps`.
        version: of Calomel.
        protocol: version of the wire protocol.
    """

    url: _Text
    token: _Text | None = field(repr=False)
    pid: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    started: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    model: _Text | None
    weights: _Text
    device: _Text
    version: _Text
    protocol: Annotated[int, Meta(ge=0, le=2**31 - 1)]

    def alive(self) -> bool:
        """Whether its process still runs."""
        return process_of(self.pid, self.started) is not None


def runtime_folder() -> Path:
    """The user's runtime folder (on Linux `$XDG_RUNTIME_DIR/calomel`, or the system's fallback)."""
    import warnings

    import platformdirs  # takes 25 ms, which an editor's first answer must not wait for

    with warnings.catch_warnings():
        # Without XDG_RUNTIME_DIR (no session, a container) its fallback is fine: `check_folder` checks it.
        warnings.simplefilter("ignore", getattr(platformdirs, "RuntimeDirWarning", UserWarning))
        return platformdirs.user_runtime_path("calomel", appauthor=False)


def default_path() -> Path:
    """`server.json` in the runtime folder, for a server that the user started."""
    return runtime_folder() / _NAME


def socket_path(path: Path) -> Path | None:
    """Where the server of a runtime file listens; None where the system has no Unix sockets.

    Beside the file if the path is short enough, else in a folder of the user's own in /tmp.
    """
    if UNIX is None or not hasattr(os, "getuid"):
        return None
    beside = path.with_suffix(".sock")
    if len(os.fsencode(beside)) <= MOST_SOCKET_BYTES:
        return beside
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:_NAME_CHARACTERS]
    return Path(f"/tmp/calomel-{os.getuid()}", f"{name}.sock")  # noqa: S108 (`check_folder` looks at it)


def socket_in(url: str) -> str | None:
    """The path of the Unix socket in an address; None for an address of another kind."""
    scheme, _, path = url.partition(":")
    return path if scheme == "unix" else None


def connection(url: str, seconds: float) -> socket.socket:
    """A connection to a server of a runtime file, with this time limit. Raises OSError."""
    path = socket_in(url)
    if path is None:
        parts = urlsplit(url)
        return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=seconds)
    talk = socket.socket(UNIX)
    try:
        talk.settimeout(seconds)
        talk.connect(path)
    except BaseException:
        talk.close()
        raise
    return talk


def read(path: Path) -> ServerRecord | None:
    """The record in `path`; None when there is no file.

    Raises RuntimeFileError for a file that must not be trusted: of another user, open to others, a link, damaged.
    """
    try:
        check_folder(path.parent)
        descriptor = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RuntimeFileError(f"cannot read {path} ({error.strerror})") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise RuntimeFileError(f"{path} is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        if not is_own(status):
            raise RuntimeFileError(f"{path} belongs to another user")
        if rights_of_others(status):
            raise RuntimeFileError(f"{path} is open to other users")
        data = file.read(_MAX_BYTES + 1)
    try:
        return read_json(data, ServerRecord)
    except FieldError as error:
        raise RuntimeFileError(f"{path} is damaged: {error}") from None


def live(path: Path) -> ServerRecord | None:
    """The record in `path` if its server runs; a file that must not be trusted counts as none."""
    with contextlib.suppress(RuntimeFileError):
        record = read(path)
        return record if record is not None and record.alive() else None
    return None


def check_folder(folder: Path) -> None:
    """Raise RuntimeFileError if others could put files there; FileNotFoundError if it does not exist."""
    status = folder.stat()
    if not is_own(status):
        raise RuntimeFileError(f"{folder} belongs to another user: choose another runtime-file")
    # In a sticky folder nobody can replace what belongs to another.
    if rights_of_others(status, stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        raise RuntimeFileError(f"other users can write to {folder}: choose another runtime-file, or chmod go-w it")


@contextmanager
def published(path: Path, record: ServerRecord) -> Iterator[None]:
    """Keep the record in `path` for as long as the context is open.

    Only the user can read the file (mode 0600), from its first byte on. It replaces that of an earlier server; on exit,
    unless a later server has replaced it, the earlier one's comes back if that still runs, else the file is removed.

    Raises RuntimeFileError when the folder cannot be written or is not the user's alone.
    """
    earlier = live(path)
    _write(path, record)
    try:
        yield
    finally:
        if holds(path, record):
            with contextlib.suppress(OSError, RuntimeFileError):
                if earlier is not None and earlier.alive():
                    _write(path, earlier)
                else:
                    path.unlink()


def _write(path: Path, record: ServerRecord) -> None:
    draft = path.with_name(f"{path.name}.{record.pid}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_folder(path.parent)
        descriptor = open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(record), file)
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise RuntimeFileError(f"cannot write the runtime file {path}: {error.strerror}") from error


def holds(path: Path, record: ServerRecord) -> bool:
    """Whether the file is still this server's."""
    try:
        current = read(path)
    except RuntimeFileError:
        return False
    return current is not None and (current.pid, current.started, current.url) == (
        record.pid,
        record.started,
        record.url,
    )
