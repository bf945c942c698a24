"""Where a running server leaves its address and token for the editors of the same user."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from calomel.server.errors import StartError

_NAME = "server.json"


def default_path() -> Path:
    """`server.json` in the user's runtime folder (on Linux `$XDG_RUNTIME_DIR/calomel`, or the system's stand-in)."""
    return platformdirs.user_runtime_path("calomel", appauthor=False) / _NAME


@contextmanager
def published(path: Path, *, url: str, token: str | None, model: Path | None) -> Iterator[None]:
    """Keep the runtime file for as long as the context is open.

    The file holds `url`, `token` (null when there is none), `pid` and `model` (null for the shipped one) as JSON. Only
    its user can read it (mode 0600), from its first byte on. A file of an earlier server is replaced; on leaving, the
    file goes unless a later server has replaced it.

    Raises StartError when the folder cannot be written or belongs to another user.
    """
    pid = os.getpid()
    content = {"url": url, "token": token, "pid": pid, "model": None if model is None else str(model.resolve())}
    draft = path.with_name(f"{path.name}.{pid}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.parent.stat().st_uid != os.getuid():
            raise StartError(f"{path.parent} belongs to another user: choose another runtime-file")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file)
        draft.replace(path)
    except OSError as error:
        raise StartError(f"cannot write the runtime file {path}: {error.strerror}") from error
    try:
        yield
    finally:
        _remove_own(path, pid)


def _remove_own(path: Path, pid: int) -> None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        if json.loads(path.read_text(encoding="utf-8"))["pid"] == pid:
            path.unlink()
