"""Runs a program that a model wrote, with limits on time, memory, processes, files and network.

The program runs in `jail.py`, in a process of its own: `python -I`, an empty environment, an empty temporary folder.
On Linux with user namespaces it has no network interface, sees no other process, and can write nothing but that folder;
elsewhere Python's sockets are blocked, and the verdict says so (`confinement` is "shim"). This contains mistakes of a
small model and the usual mischief; it is no defence against an attack on the kernel.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

JAIL = Path(__file__).with_name("jail.py")

REPORT_BYTES = 4096
GRACE_SECONDS = 2.0

Confinement = Literal["namespaces", "network", "shim", "unknown"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may use.

    Attributes:
        wall_seconds: time on the clock, after which the whole process group is killed.
        cpu_seconds: processor time of one process.
        memory_bytes: address space of one process.
        file_bytes: size of one written file.
        folder_bytes: size of everything in the working folder (enforced where namespaces are permitted).
        processes: how many processes and threads may exist at once.
    """

    wall_seconds: float = 10.0
    cpu_seconds: int = 3  # the time limit of the published HumanEval harness
    memory_bytes: int = 512 * 2**20
    file_bytes: int = 2**20
    folder_bytes: int = 16 * 2**20
    processes: int = 16


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the program ran to its end, and if not, why (an exception's name, or "limit" or "timeout").

    `confinement` says how far the system let the program be shut in; "unknown" when it could not report any more.
    """

    passed: bool
    reason: str | None
    confinement: Confinement


def run_program(program: str, limits: Limits | None = None) -> Verdict:
    """Run Python source in the sandbox; never raises for what the program does."""
    bounds = limits if limits is not None else Limits()
    token = secrets.token_hex(16)
    order = json.dumps({"program": program, "token": token, **asdict(bounds)})
    with (
        tempfile.TemporaryDirectory(prefix="calomel-sandbox-", ignore_cleanup_errors=True) as folder,
        # A file, not a pipe: the limit on file sizes then bounds what a program can make this process read.
        tempfile.TemporaryFile() as report,
    ):
        process = subprocess.Popen(  # noqa: S603 - fixed arguments; the program is data on stdin
            [_interpreter(), "-I", "-S", "-c", JAIL.read_text(encoding="utf-8")],
            stdin=subprocess.PIPE,
            stdout=report,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"LANG": "C.UTF-8", "PYTHONHASHSEED": "0"},
            start_new_session=True,
        )
        try:
            process.communicate(order.encode(), timeout=bounds.wall_seconds)
        except subprocess.TimeoutExpired:
            return Verdict(passed=False, reason="timeout", confinement="unknown")
        finally:
            # Also after a normal end: the program may have left children that hold nothing open.
            _end_group(process)
        report.seek(0)
        output = report.read(REPORT_BYTES)
    return _read(output, token)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Let the jail end its namespace, which waits for the last process in it; then kill whatever is left."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_SECONDS)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _interpreter() -> str:
    """The interpreter itself, not a virtual environment's link to it: programs get the standard library only."""
    return getattr(sys, "_base_executable", None) or sys.executable


def _read(output: bytes, token: str) -> Verdict:
    """The jail's one line; without it the program was ended by a limit (or ended its process itself)."""
    try:
        said = json.loads(output.decode("utf-8", errors="replace").strip())
    except json.JSONDecodeError:
        return Verdict(passed=False, reason="limit", confinement="unknown")
    if not isinstance(said, dict):
        return Verdict(passed=False, reason="limit", confinement="unknown")
    claimed = said.get("confinement")
    confinement: Confinement = claimed if claimed in {"namespaces", "network", "shim"} else "unknown"
    passed = said.get("token") == token
    return Verdict(passed=passed, reason=None if passed else str(said.get("error")), confinement=confinement)
