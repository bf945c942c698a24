"""How much memory a device has left, and what a process takes before any weight is read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import torch

_MEMINFO: Final = Path("/proc/meminfo")
_CGROUP: Final = Path("/sys/fs/cgroup")
# Python, PyTorch and the other libraries; 394 MB were measured with the shipped weights.
PROCESS_BYTES: Final = 400 * 1024**2
# Limit, use, and the line of memory.stat with what could be given back: of version 2 of control groups, and of 1.
_LIMITS: Final = (
    ("memory.max", "memory.current", "memory.stat", ""),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_"),
)


def free_bytes(device: str, meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP) -> int | None:
    """Bytes that a new model may take on `device`; None where the system does not say."""
    if torch.device(device).type == "cuda":
        return torch.cuda.mem_get_info(torch.device(device))[0]
    limits = (_left_of_limit(cgroup, *names) for names in _LIMITS)
    told = [left for left in (_available(meminfo), *limits) if left is not None]
    return min(told, default=None)


def _available(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
        (line,) = (line for line in lines if line.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None


def _left_of_limit(cgroup: Path, most: str, now: str, details: str, prefix: str) -> int | None:
    """What a container's limit leaves; files that were only read are given back when memory is short."""
    try:
        limit = int((cgroup / most).read_text(encoding="ascii"))
        used = int((cgroup / now).read_text(encoding="ascii"))
        stat = dict(line.split() for line in (cgroup / details).read_text(encoding="ascii").splitlines())
        return max(0, limit - used + sum(int(stat.get(f"{prefix}{kind}_file", 0)) for kind in ("inactive", "active")))
    except (OSError, ValueError):
        return None
