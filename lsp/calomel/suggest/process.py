"""Whether a process that a file speaks of is still the same one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
# Fields of /proc/PID/stat behind the command's name, which stands in parentheses and may hold anything (proc(5)).
_STATE: Final = 0
_START_TIME: Final = 19
_ENDED: Final = frozenset({"Z", "X", "x"})


def started(pid: int, proc: Path = _PROC) -> int:
    """When the process started, in clock ticks since the system did; 0 where the system does not tell."""
    fields = _stat(pid, proc)
    return 0 if fields is None else int(fields[_START_TIME])


def runs(pid: int, start: int, proc: Path = _PROC) -> bool:
    """Whether the process `pid` that started at `start` (0: unknown) still runs and may be signalled by this user.

    A process that has ended and waits for its parent to notice does not run.
    """
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError, OverflowError):
        return False
    fields = _stat(pid, proc)
    if fields is None:
        return True
    if fields[_STATE] in _ENDED:
        return False
    return start in {0, int(fields[_START_TIME])}


def _stat(pid: int, proc: Path) -> list[str] | None:
    try:
        text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) > _START_TIME else None
