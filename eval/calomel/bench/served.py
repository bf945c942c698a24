"""A real `calomel serve` for a bench: a process of its own with private folders, a free port and a token."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from calomel.infer import runtime_file
from calomel.infer.runtime_file import RuntimeFileError

# A slower answer counts as none.
PATIENCE: Final = 60.0
_READY_SECONDS, _END_SECONDS = 120.0, 30.0
_TAIL: Final = 2000
OK: Final = 200


class ServedError(Exception):
    """The server did not start; the message has its last words."""


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: its URL, its token, its process, and its output so far."""

    url: str
    token: str
    pid: int
    log: Path

    def client(self, number: int | None = None) -> httpx.AsyncClient:
        """A client of the bench; with a number, from an address of its own, so that the server tells clients apart."""
        transport = httpx.AsyncHTTPTransport(local_address=None if number is None else source_address(self.url, number))
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx.AsyncClient(base_url=self.url, headers=headers, transport=transport, timeout=PATIENCE)


def source_address(url: str, number: int) -> str | None:
    """A loopback address for client `number`: Linux routes all of 127.0.0.0/8 to this machine.

    None where the server is elsewhere.
    """
    if sys.platform != "linux" or not httpx.URL(url).host.startswith("127."):
        return None
    return str(ipaddress.IPv4Address("127.1.0.1") + number)


@contextmanager
def served(
    model: Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    arguments: Sequence[str] = (),
    ready_seconds: float = _READY_SECONDS,
) -> Iterator[Served]:
    """A real `calomel serve` with private folders, a free port and a token of its own; stopped when the context ends.

    Raises ServedError when it does not become ready within `ready_seconds`.
    """
    token = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="calomel-bench-") as made:
        folder = Path(made)
        record, log = folder / "run" / "server.json", folder / "log"
        command = [sys.executable, "-m", "calomel.cli", "serve", "--port", "0", "--runtime-file", str(record)]
        command += ["--device", device, *(["--model", str(model)] if model else [])]
        command += [*(["--threads", str(threads)] if threads else []), *arguments]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CALOMEL_")}
        with log.open("wb") as words:
            process = subprocess.Popen(  # noqa: S603 - our own program
                command,
                env={**kept, **private_folders(folder), "CALOMEL_TOKEN": token},
                stdout=words,
                stderr=subprocess.STDOUT,
            )
        try:
            yield Served(_url(process, record, log, ready_seconds), token, process.pid, log)
        finally:
            process.terminate()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def private_folders(folder: Path) -> dict[str, str]:
    """Environment variables for private runtime, state, cache and configuration folders, created in `folder`."""
    found = {name: folder / name.lower() for name in _FOLDERS}
    for path in found.values():
        path.mkdir(mode=0o700)
    return {name: str(path) for name, path in found.items()}


_FOLDERS: Final = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


def _url(process: subprocess.Popen[bytes], record: Path, log: Path, seconds: float) -> str:
    """The server's address, as soon as its model is loaded."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(RuntimeFileError, httpx.HTTPError):
            found = runtime_file.read(record)
            if found is not None and httpx.get(f"{found.url}/health", timeout=5).status_code == OK:
                return found.url
        time.sleep(0.05)
    raise ServedError(f"the server did not become ready: {log.read_text(errors='replace')[-_TAIL:].strip()}")
