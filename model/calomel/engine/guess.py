"""Reading ahead in a guess of the answer: which tokens come next when the answer has left it and comes back.

The causal mode decides every token; a wrong guess costs rows of a forward, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# How far ahead the answer is looked for in the guess once it has left it: a replaced name or a dropped argument.
_REACH: Final = 24


class Guessing:
    """Where in a guess the answer is.

    Args:
        guess: what the answer is probably made of, in order.
    """

    def __init__(self, guess: Sequence[int]) -> None:
        self._guess = tuple(guess)
        self._at = 0
        self._shown: tuple[int, ...] = ()
        self._lost = 0

    def ahead(self, room: int) -> list[int]:
        """The tokens that are worth verifying now, at most `room`; none while the answer goes ways of its own.

        Behind one token that the guess does not have, another one in its place is assumed.
        """
        start = self._at + self._lost
        self._shown = self._guess[start : start + max(0, room)] if self._lost <= 1 else ()
        return list(self._shown)

    def found(self, tokens: Sequence[int]) -> None:
        """Take in the tokens that were decided: a beginning of what was shown, and one more."""
        if not tokens:
            return
        agreed = len(tokens) - 1
        if agreed:
            self._at += self._lost + agreed
            self._lost = 0
        ahead = self._guess[self._at : self._at + _REACH]
        if tokens[-1] in ahead:
            self._at += ahead.index(tokens[-1]) + 1
            self._lost = 0
        else:
            self._lost += 1
