"""A real `calomel serve` of its own: private folders, a free port, a token that only the bench knows."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calomel.suggest import runtime_file
from calomel.suggest.runtime_file import RuntimeFileError

READY_SECONDS: Final = 120.0
_END_SECONDS: Final = 30.0
_POLL: Final = 0.05
_TAIL: Final = 2000


class ServedError(Exception):
    """The server did not start; the message has its last words."""


@dataclass(frozen=True, slots=True)
class Served:
    """A running server.

    Attributes:
        host: address that it listens on.
        port: and port.
        token: what it wants to see.
        pid: of its process.
        log: what it has written so far.
    """

    host: str
    port: int
    token: str
    pid: int
    log: Path


@contextmanager
def served(
    model: Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    arguments: Sequence[str] = (),
    ready_seconds: float = READY_SECONDS,
) -> Iterator[Served]:
    """Start a server with its own defaults and end it with the context; ready when the context opens.

    Raises ServedError when it does not become ready within `ready_seconds`.
    """
    token = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="calomel-bench-") as made:
        folder = Path(made)
        record, log = folder / "run" / "server.json", folder / "log"
        command = [sys.executable, "-m", "calomel.cli", "serve", "--port", "0", "--runtime-file", str(record)]
        command += ["--device", device, *(["--model", str(model)] if model else [])]
        command += [*(["--threads", str(threads)] if threads else []), *arguments]
        with log.open("wb") as words:
            process = subprocess.Popen(  # noqa: S603 - our own program
                command, env=_environment(folder, token), stdout=words, stderr=subprocess.STDOUT
            )
        try:
            host, port = _address(process, record, log, ready_seconds)
            yield Served(host, port, token, process.pid, log)
        finally:
            process.terminate()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(process: subprocess.Popen[bytes], record: Path, log: Path, seconds: float) -> tuple[str, int]:
    """Host and port of the server, as soon as its model is loaded."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            found = runtime_file.read(record)
        except RuntimeFileError:
            found = None
        if found is not None and _ready(found.url):
            host, _, port = found.url.removeprefix("http://").rpartition(":")
            return host, int(port)
        time.sleep(_POLL)
    raise ServedError(f"the server did not become ready: {log.read_text(errors='replace')[-_TAIL:].strip()}")


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:  # noqa: S310 - our own server
            return bool(answer.status == 200)  # noqa: PLR2004 (RFC 9110)
    except (urllib.error.URLError, OSError):
        return False


def _environment(folder: Path, token: str) -> dict[str, str]:
    """The caller's environment without settings of servers, and with private folders."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CALOMEL_")}
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        path = folder / name.lower()
        path.mkdir(mode=0o700)
        kept[name] = str(path)
    return {**kept, "CALOMEL_TOKEN": token}
