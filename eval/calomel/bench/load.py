"""Whether something else was using the machine while a bench ran.

`/proc/stat` tells how long all processors were busy; what this process and its waited-for children used is subtracted.
What is left is other processes' load, in cores. Where `/proc` is absent, the load average minus one stands in.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

# Other processes used more than this many cores on average: the times of the run are marked.
LOADED_CORES = 0.2
# /proc/stat counts in hundredths of a second; a shorter window would be noise.
WINDOW_SECONDS = 1.0


def busy_seconds(stat: Path = Path("/proc/stat")) -> float | None:
    """Seconds that all processors together were busy since boot; None where the system does not tell."""
    try:
        fields = stat.read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(field) for field in fields[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Processor seconds of this process, its threads and its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@dataclass(frozen=True, slots=True)
class LoadSummary:
    """Mean and worst load of other processes, in cores, and the load average at the end."""

    loaded: bool
    others_mean: float
    others_max: float
    loadavg: float


class LoadWatch:
    """Samples the load of other processes whenever it is asked and a window has passed."""

    def __init__(
        self,
        *,
        busy: Callable[[], float | None] = busy_seconds,
        own: Callable[[], float] = own_seconds,
        clock: Callable[[], float] = time.monotonic,
        loadavg: Callable[[], float] = lambda: os.getloadavg()[0],
    ) -> None:
        """Start the first window; the readers are parameters so that a test can supply its own."""
        self._busy, self._own, self._clock, self._loadavg = busy, own, clock, loadavg
        self._mark = (clock(), busy(), own())
        self._latest: float | None = None

    def others(self) -> float:
        """Cores that other processes used in the newest full window (the running one before the first is full)."""
        now, busy, own = self._clock(), self._busy(), self._own()
        started, busy_then, own_then = self._mark
        if now - started >= WINDOW_SECONDS or self._latest is None:
            latest = self._between(now - started, busy, busy_then, own - own_then)
            if now - started >= WINDOW_SECONDS:
                self._mark = (now, busy, own)
                self._latest = latest
            return latest
        return self._latest

    def summary(self, samples: Sequence[float]) -> LoadSummary:
        """What the samples of a whole run say."""
        mean = fmean(samples) if samples else 0.0
        return LoadSummary(mean > LOADED_CORES, mean, max(samples, default=0.0), self._loadavg())

    def _between(self, seconds: float, busy: float | None, busy_then: float | None, own: float) -> float:
        if busy is None or busy_then is None:
            return max(0.0, self._loadavg() - 1.0)
        if seconds < WINDOW_SECONDS / 10:
            return 0.0
        return max(0.0, (busy - busy_then - own) / seconds)
