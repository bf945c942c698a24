"""A line about progress on stderr every few seconds: enough for a person, little for a log file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

EVERY_SECONDS = 5.0


class Progress:
    """Counts items of a phase and says so at most every five seconds, and at the phase's end."""

    def __init__(self, *, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Write to `stream`, stderr unless given."""
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._phase, self._total, self._done = "", 0, 0
        self._started = self._said = clock()

    def phase(self, name: str, total: int) -> None:
        """Begin a phase of `total` items."""
        self._phase, self._total, self._done = name, total, 0
        self._started = self._said = self._clock()
        self.say(f"{name}: {total} to do")

    def step(self, note: str = "") -> None:
        """One more item is done."""
        self._done += 1
        now = self._clock()
        if now - self._said >= EVERY_SECONDS or self._done == self._total:
            self._said = now
            rate = self._done / max(now - self._started, 1e-9)
            self.say(f"{self._phase}: {self._done}/{self._total}, {rate:.1f}/s {note}".rstrip())

    def say(self, sentence: str) -> None:
        """Write one line."""
        self._stream.write(sentence + "\n")
        self._stream.flush()
