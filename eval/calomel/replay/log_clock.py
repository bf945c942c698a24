"""The clock of a log: seconds from its start, which never run backwards whatever stands in it."""

from __future__ import annotations

import math
from typing import Final

from calomel.replay.events import Problem

# Times that lag behind for longer than this many entries are not wrong ones: somebody set the recorder's clock back.
PATIENCE: Final = 20


class LogClock:
    """Turns the times of entries into seconds from the first one.

    A time before the last one is taken as the last one, and a `Problem` says so: one for a run of such entries, named
    after its first. A run of more than `PATIENCE` entries is a clock that was set back: time goes on from there.

    Args:
        problems: where what is wrong is put.
        unit: seconds in one unit of the log's times.
        start: time of the log's start in its own units; None: that of the first entry.
    """

    def __init__(self, problems: list[Problem], unit: float = 1.0, start: float | None = None) -> None:
        self.now = 0.0
        self._problems = problems
        self._unit = unit
        self._start = start
        # The first entry of a run of late ones, how many there are, and by how much the first was late.
        self._run: tuple[int, int, float] | None = None

    def at(self, entry: int, time: object, *, lag: float = 0.0) -> float:
        """Seconds at an entry.

        Args:
            entry: of the log.
            time: in the log's units; anything but a number is a problem, None is no time and none.
            lag: seconds that entries of this kind may be written down late.
        """
        if time is None:
            return self.now
        if isinstance(time, bool) or not isinstance(time, int | float) or not math.isfinite(time):
            self._problems.append(Problem(entry, f"Its time {time!r} is no time; taken as that of the entry before."))
            return self.now
        if self._start is None:
            self._start = float(time)
        seconds = (time - self._start) * self._unit
        late = self.now - seconds
        if late <= 0:
            self.settle()
            self.now = seconds
        elif late > lag:
            self._late(entry, late)
        return self.now

    def settle(self) -> None:
        """Say what is left to say; to be called at the log's end."""
        if self._run is None:
            return
        first, count, late = self._run
        more = f", and so are {count - 1} entries after it" if count > 1 else ""
        message = f"Time runs backwards by {late:.3f} s: taken as the time of the entry before{more}."
        self._problems.append(Problem(first, message))
        self._run = None

    def _late(self, entry: int, late: float) -> None:
        first, count, by = self._run or (entry, 0, late)
        self._run = (first, count + 1, by)
        if count + 1 <= PATIENCE:
            return
        self._problems.append(
            Problem(
                first,
                f"Time runs backwards by {by:.3f} s and stays behind: {count + 1} entries are taken at the time of the"
                " entry before, and time is counted on from there.",
            )
        )
        self._run = None
        self._start = (self._start or 0.0) - late / self._unit
