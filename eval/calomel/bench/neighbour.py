"""What a busy neighbour does to a denoising step: the same answer alone and beside two busy threads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from calomel.bench.report import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS, REPETITIONS = 3, 8
# hashlib lets go of the interpreter's lock, so both threads really run.
_BUSY = """
import hashlib, threading
block = bytes(1 << 24)
def work():
    while True:
        hashlib.sha256(block).digest()
for _ in range(2):
    threading.Thread(target=work).start()
print("busy", flush=True)
"""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Median milliseconds of a step, alone and beside the neighbour."""

    alone: float
    beside: float

    def flat(self) -> dict[str, Value]:
        """The keys of the report."""
        return {
            "step_alone_ms": round(self.alone, 3),
            "step_beside_busy_ms": round(self.beside, 3),
            "step_beside_busy_ratio": round(self.beside / self.alone, 3) if self.alone else None,
        }


def beside_neighbour(step: Callable[[], float]) -> Neighbour:
    """Measure `step`, which returns milliseconds, in turns alone and beside a busy process."""
    step()
    alone: list[float] = []
    beside: list[float] = []
    for _ in range(ROUNDS):
        alone += [step() for _ in range(REPETITIONS)]
        with busy_process():
            beside += [step() for _ in range(REPETITIONS)]
    return Neighbour(median(alone), median(beside))


@contextmanager
def busy_process() -> Iterator[None]:
    """A process that keeps two threads busy, running as long as the context lasts."""
    process = subprocess.Popen([sys.executable, "-c", _BUSY], stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        if process.stdout is not None:
            process.stdout.readline()
        yield
    finally:
        process.kill()
        process.communicate()
