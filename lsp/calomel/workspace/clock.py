"""Time, as a value that is passed in."""

from __future__ import annotations

from collections.abc import Callable

# Seconds that only ever grow; `time.monotonic` outside of tests and replays.
Clock = Callable[[], float]
