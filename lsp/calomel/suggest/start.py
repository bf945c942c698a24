"""Starts the server that all editor windows of a user share, once, however many windows open at the same time."""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calomel.suggest.completer import CompleterError
from calomel.suggest.runtime_file import RuntimeFileError, ServerRecord, check_folder

LOG: Final = logging.getLogger(__name__)

# The server publishes its address before it loads the model; what takes longer than this hangs.
START_SECONDS: Final = 60.0
_CACHE_TOKENS: Final = 65_536
_POLL: Final = 0.02
_LOG_BYTES: Final = 1024 * 1024
_TAIL: Final = 2000
# What a server needs of the environment. Settings of other programs, and tokens in it, are none of its business.
_KEPT: Final = frozenset(
    {"HOME", "PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME", "VIRTUAL_ENV", "LD_LIBRARY_PATH",
     "PYTHONPATH", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_CACHE_DIR"}
)  # fmt: skip
_KEPT_PREFIXES: Final = ("XDG_", "CUDA_", "NVIDIA_", "HSA_", "ROCR_", "LC_")


@dataclass(frozen=True, slots=True)
class Wish:
    """The server that is wanted.

    Attributes:
        model: checkpoint folder; None for the shipped one.
        weights: id of that folder's weights.
        path: its runtime file.
    """

    model: Path | None
    weights: str
    device: str
    idle_minutes: float
    path: Path


def start_server(wish: Wish, running: Callable[[], ServerRecord | None]) -> ServerRecord:
    """Start it, unless somebody else just did; returns when it listens (the model may still be loading). Blocks.

    Raises CompleterError with the server's own last words when it does not start.
    """
    until = time.monotonic() + START_SECONDS
    with _lock(wish.path, until):
        found = running()
        if found is not None:
            return found
        log = log_path()
        process = _spawn(wish, log)
        # Collects it when it ends, so that it is not taken for a running one.
        threading.Thread(target=process.wait, name="calomel-engine", daemon=True).start()
        while time.monotonic() < until:
            found = running()
            if found is not None:
                return found
            if process.poll() is not None:
                raise CompleterError("failed", f"the model's server ended at its start: {_last_words(log)}")
            time.sleep(_POLL)
        process.terminate()
    raise CompleterError("failed", f"the model's server did not start within {START_SECONDS:.0f} seconds; see {log}")


def log_path() -> Path:
    """Where the shared server writes its log: counts and times, no text."""
    import platformdirs

    return platformdirs.user_state_path("calomel", appauthor=False) / "engine.log"


def environment(outer: dict[str, str]) -> dict[str, str]:
    """What the server gets of the environment."""
    kept = {name: value for name, value in outer.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
    # Spinning threads would slow down the editor and everything else.
    return {**kept, "OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "PYTHONUNBUFFERED": "1"}


def _spawn(wish: Wish, log: Path) -> subprocess.Popen[bytes]:
    # The user's settings for a server of his own (its address, its token, who may come in) are not for this one.
    command = [sys.executable, "-m", "calomel.cli", "serve", "--no-config", "--fresh-token"]
    command += ["--port", "0", "--device", wish.device]
    if wish.device.startswith("cuda"):
        # One person's contexts; a server of a team keeps more. A CPU's usual number is one person's, and is what
        # `calomel doctor` counts.
        command += ["--cache-tokens", str(_CACHE_TOKENS)]
    command += ["--runtime-file", str(wish.path), "--idle-minutes", str(wish.idle_minutes)]
    if wish.model is not None:
        command += ["--model", str(wish.model)]
    try:
        with _open_log(log) as errors:
            # A session of its own: it outlives this window. Its standard output shows the token, so nobody reads it.
            return subprocess.Popen(  # noqa: S603 (our own program)
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment(dict(os.environ)),
                cwd="/",
                start_new_session=True,
            )
    except OSError as error:
        raise CompleterError("failed", f"the model's server cannot be started: {error.strerror}") from None


@contextmanager
def _open_log(path: Path) -> Iterator[int]:
    """The log, or nothing where it cannot be written: a server without a log is better than none."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        LOG.warning("the model's server has no log: %s cannot be written (%s)", path, error.strerror)
        descriptor = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_size > _LOG_BYTES:
            os.ftruncate(descriptor, 0)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _lock(path: Path, until: float) -> Iterator[None]:
    """One starter at a time. The lock goes with its process, so no dead one can hold it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_folder(path.parent)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path.with_suffix(".lock"), flags, 0o600)
    except RuntimeFileError as error:
        raise CompleterError("failed", str(error)) from None
    except OSError as error:
        raise CompleterError("failed", f"{path.parent} cannot be written: {error.strerror}") from None
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise CompleterError(
                        "timeout", "another window has been starting the server for too long"
                    ) from None
                time.sleep(_POLL)
        yield
    finally:
        os.close(descriptor)


def _last_words(log: Path) -> str:
    """The last line of the server's log; it holds no text of the user."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace")[-_TAIL:].strip().splitlines()
    except OSError:
        return f"no word in {log}"
    return lines[-1] if lines else f"no word in {log}"
