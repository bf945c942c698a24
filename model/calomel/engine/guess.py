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
        self._sure = 0  # the answer agrees with the guess before it
        self._next = 0  # what is shown next begins here
        self._astray = 0  # tokens in a row that the guess did not foretell
        self._last = -1

    def ahead(self, room: int) -> list[int]:
        """The tokens that are worth verifying now, at most `room`; none while the answer goes ways of its own."""
        return list(self._guess[self._next : self._next + max(0, room)]) if self._next >= 0 else []

    def found(self, tokens: Sequence[int]) -> None:
        """Take in the tokens that were decided: a beginning of what was shown, and one more."""
        if not tokens:
            return
        agreed, own = len(tokens) - 1, tokens[-1]
        if agreed:
            self._sure = self._next + agreed
            self._astray, self._last = 0, tokens[-2]
        self._astray += 1
        self._next = self._behind(own)
        self._last = own

    def _behind(self, own: int) -> int:
        """Where the guess goes on behind a token that it did not foretell; -1 where that is unknown.

        Nothing is sure before the next tokens agree, so that a token which stands there by chance loses nothing.
        """
        stop = min(len(self._guess), self._sure + _REACH)
        places = [at for at in range(self._sure, stop) if self._guess[at] == own]
        pairs = [at for at in places if at and self._guess[at - 1] == self._last]
        if places:
            return (pairs or places)[0] + 1
        # Behind the first one, another token in place of one is likeliest.
        return self._sure + 1 if self._astray == 1 else -1
