"""What of this machine matters to a model: its memory, its processors, and a GPU. Nothing is imported to find it.

A GPU is found by what its driver leaves on the system; whether PyTorch or llama.cpp can use it is another question.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from calomel.storage import available_bytes, processors, psutil

# What the NVIDIA driver leaves, on Linux and in WSL2; the Makefile and the VS Code extension look at the same.
CARDS: Final = ("/proc/driver/nvidia/version", "/usr/lib/wsl/lib/nvidia-smi")
_SMI: Final = "nvidia-smi"
_ASKED: Final = ("--query-gpu=memory.total,name", "--format=csv,noheader,nounits")
_PATIENCE: Final = 10.0
# AMD's compute driver, without which there is no ROCm.
_KFD: Final = "/dev/kfd"
_VRAM: Final = "sys/class/drm/card*/device/mem_info_vram_total"
_MIB: Final = 1024**2
_CGROUP: Final = Path("/sys/fs/cgroup")
# Limit, usage, and the line of memory.stat with reclaimable memory: of control groups version 2, and of version 1.
_LIMITS: Final = (
    ("memory.max", "memory.current", "memory.stat", ""),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_"),
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU, by what the system says.

    Attributes:
        maker: whose it is.
        name: for people.
        memory: in bytes, the machine's own for an Apple; 0 if the driver does not tell.
    """

    maker: Literal["NVIDIA", "AMD", "Apple"]
    name: str
    memory: int


@dataclass(frozen=True, slots=True)
class Machine:
    """This machine.

    Attributes:
        memory: in bytes.
        free: of it, in bytes, as far as a container's limit allows.
        cores: processors that this process may use.
        gpu: the one with the most memory; None without any.
    """

    memory: int
    free: int
    cores: int
    gpu: Gpu | None


def this_machine() -> Machine:
    """What is here now. Takes as long as `nvidia-smi`, if there is one."""
    return Machine(int(psutil().virtual_memory().total), free_bytes(), processors(), gpu())


def free_bytes(cgroup: Path = _CGROUP) -> int:
    """Bytes of memory that a new model may take: what is available, within a container's limit."""
    limits = (_left_of_limit(cgroup, *names) for names in _LIMITS)
    return min([available_bytes(), *(left for left in limits if left is not None)])


def _left_of_limit(cgroup: Path, most: str, now: str, details: str, prefix: str) -> int | None:
    """What a container's limit leaves; cached files are reclaimed when memory is short."""
    try:
        limit = int((cgroup / most).read_text(encoding="ascii"))
        used = int((cgroup / now).read_text(encoding="ascii"))
        stat = dict(line.split() for line in (cgroup / details).read_text(encoding="ascii").splitlines())
        return max(0, limit - used + sum(int(stat.get(f"{prefix}{kind}_file", 0)) for kind in ("inactive", "active")))
    except (OSError, ValueError):
        return None


def nvidia_smi(root: Path = Path("/")) -> str | None:
    """The program of the NVIDIA driver that describes its cards; in WSL2 it is not always on the path."""
    inside = (str(root / each.lstrip("/")) for each in CARDS if each.endswith(_SMI))
    return shutil.which(_SMI) or next((each for each in inside if Path(each).exists()), None)


def has_nvidia(root: Path = Path("/")) -> bool:
    """Whether the driver of an NVIDIA card is here, WSL2 included."""
    return any((root / each.lstrip("/")).exists() for each in CARDS) or shutil.which(_SMI) is not None


def gpu(root: Path = Path("/")) -> Gpu | None:
    """The GPU with the most memory; None without any. `root` is where the system's files are."""
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return Gpu("Apple", "Apple silicon", int(psutil().virtual_memory().total))
    found = _nvidia(root), _amd(root)
    return max((each for each in found if each is not None), key=lambda each: each.memory, default=None)


def _nvidia(root: Path) -> Gpu | None:
    if not has_nvidia(root):
        return None
    said, program = "", nvidia_smi(root)
    with suppress(OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        if program is not None:
            command = [program, *_ASKED]
            said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE).stdout  # noqa: S603
    cards = [(int(size) * _MIB, name) for size, name in re.findall(r"^\s*(\d+), *(.*\S)", said, re.MULTILINE)]
    memory, name = max(cards, default=(0, "an NVIDIA GPU"))
    return Gpu("NVIDIA", name, memory)


def _amd(root: Path) -> Gpu | None:
    if not (root / _KFD.lstrip("/")).exists():
        return None
    sizes = []
    for each in root.glob(_VRAM):
        with suppress(OSError, ValueError):
            sizes.append(int(each.read_text(encoding="ascii")))
    return Gpu("AMD", "an AMD GPU", max(sizes, default=0))
