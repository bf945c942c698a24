"""Says once that the model is too slow for this machine, or this machine for the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

TOO_SLOW: Final = "Calomel: answers come too late on this machine; `calomel doctor` says what helps."
# A cold context, a compiler that runs beside it: one late answer says nothing, and neither do three.
_ENOUGH: Final = 5


class Lateness:
    """Counts answers that came too late, one after another.

    Args:
        say: shows a sentence to the user, each but once.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._late = 0

    def note(self, *, late: bool) -> None:
        """An answer came, or the server was too busy to give one."""
        self._late = self._late + 1 if late else 0
        if self._late == _ENOUGH:
            self._say(TOO_SLOW)
