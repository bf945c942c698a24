"""What an answer may be: a constraint says, token by token, which answers are allowed.

The engine knows no grammar. It asks a walk, which stands behind the tokens that are settled, what may come next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Walk(Protocol):
    """One way through a constraint: it stands behind the tokens that it has taken in. The end token is none of them."""

    def advance(self, tokens: Sequence[int]) -> int:
        """Take in the longest beginning of `tokens` that is allowed, and return its length."""
        ...

    def may_end(self) -> bool:
        """Whether the tokens that were taken in are a whole answer."""
        ...

    def allowed(self) -> bytes:
        """The tokens that may come next, one bit each: token `id` is bit `id % 8` of byte `id // 8`.

        Bits of the end token and beyond the vocabulary have no meaning; bytes that are not there are 0.
        """
        ...

    def forced(self) -> Sequence[int]:
        """Tokens that come next in any case, as far as that is known; none is always right."""
        ...


class Constraint(Protocol):
    """Which answers are allowed. Can be shared by requests."""

    def begin(self) -> Walk:
        """A walk at the beginning of an answer; used by one thread at a time."""
        ...
