"""How time passes for those who look at a demonstration."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from calomel.cli.stage.tour import OverError


@dataclass(slots=True)
class WallPace:
    """Real time.

    Attributes:
        speed: how many times as fast as the recording; None does not rest at all.
        until: of `clock`, when the demonstration ends; None for its own end.
        clock: seconds.
        sleep: waits for so many of them.
    """

    speed: float | None
    until: float | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def rest(self, seconds: float) -> None:
        """Let them look for so long, at speed 1. Raises OverError when the time is over."""
        now = self.clock()
        if self.until is not None and now >= self.until:
            raise OverError
        if self.speed is None or seconds <= 0.0:
            return
        wanted = seconds / self.speed
        self.sleep(wanted if self.until is None else min(wanted, self.until - now))
