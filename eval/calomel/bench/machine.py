"""What a result was measured on and with: processor, commit, weights, and the sources that produced it."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import calomel

# The packages whose code decides a bench's result; a change in any of them makes earlier results another measurement.
MEASURED_PACKAGES = ("engine", "families", "prompts", "suggest", "bench")


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine in words; no host or user name."""

    cpu: str
    cores: int
    memory_gib: float
    system: str
    python: str

    def __str__(self) -> str:
        """One line for a report."""
        return f"{self.cpu}, {self.cores} cores, {self.memory_gib:.0f} GiB, {self.system}, Python {self.python}"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Command, commit, machine and date: what every result carries."""

    command: str
    commit: str
    dirty: bool
    machine: Machine
    date: str


def describe_machine(cpuinfo: Path = Path("/proc/cpuinfo")) -> Machine:
    """Read the processor's name and what this process may use of it."""
    cpu = platform.processor() or platform.machine()
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
        cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), cpu)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Machine(cpu, cores, memory, f"{platform.system()} {platform.machine()}", platform.python_version())


def describe_run(command: str | None = None, *, now: datetime | None = None) -> Provenance:
    """The provenance of a run that starts now; `command` defaults to this process's own command line."""
    root = Path(__file__).resolve().parent
    commit = _git(root, "rev-parse", "HEAD") or "unknown"
    dirty = bool(_git(root, "status", "--porcelain", "--", ":(top)", ":(top,exclude)docs"))
    line = command if command is not None else shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    date = (now if now is not None else datetime.now(UTC)).strftime("%Y-%m-%d")
    return Provenance(line, commit, dirty, describe_machine(), date)


def weights_hash(folder: Path) -> str:
    """SHA-256 over every checkpoint file of `folder` (weights, configuration, tokenizer), names included."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in {".safetensors", ".json"}:
            digest.update(path.name.encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def source_hash() -> str:
    """SHA-256 over the Python sources of the packages that decide a bench's result."""
    digest = hashlib.sha256()
    for portion in sorted(Path(entry) for entry in calomel.__path__):
        for package in MEASURED_PACKAGES:
            for path in sorted((portion / package).rglob("*.py")):
                digest.update(f"{package}/{path.name}".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _git(folder: Path, *arguments: str) -> str | None:
    """Output of a git command in `folder`; None outside a work tree or without git."""
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - the user's own git
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
