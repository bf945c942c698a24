"""What the server measures about itself; asked for by tests and benches alone."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Final

KEPT: Final = 65_536


class Figures:
    """Handling times of changes: from the body's bytes to the documents and all who listen being up to date."""

    def __init__(self) -> None:
        self._seconds = array("d")
        self._count = 0

    def note(self, seconds: float) -> None:
        """One change was handled."""
        if len(self._seconds) < KEPT:
            self._seconds.append(seconds)
        else:
            self._seconds[self._count % KEPT] = seconds
        self._count += 1

    def report(self) -> dict[str, float | int | None]:
        """Counts, milliseconds and MiB."""
        ordered = sorted(self._seconds)

        def milliseconds(share: float) -> float | None:
            return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 4) if ordered else None

        return {
            "changes": self._count,
            "change_p50_ms": milliseconds(0.5),
            "change_p99_ms": milliseconds(0.99),
            "change_max_ms": milliseconds(1.0),
            "resident_mib": _resident_mib(),
        }


def _resident_mib() -> float | None:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    line = next((line for line in status.splitlines() if line.startswith("VmRSS:")), None)
    return None if line is None else round(int(line.split()[1]) / 1024, 1)
