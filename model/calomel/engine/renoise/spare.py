"""Contexts that no request uses, kept for the next keystroke of whoever they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from calomel.engine.renoise.backbone import E


@dataclass(frozen=True, slots=True)
class _Kept(Generic[E]):
    tokens: tuple[int, ...]
    encoded: E


class Spares(Generic[E]):
    """Contexts of up to `most` tokens in all; the one that was used last stays whatever its length."""

    def __init__(self, most: int) -> None:
        self._most = most
        # The longest unused first.
        self._kept: list[_Kept[E]] = []

    @property
    def tokens(self) -> int:
        """Tokens of all of them."""
        return sum(len(kept.tokens) for kept in self._kept)

    def put(self, tokens: Sequence[int], encoded: E) -> None:
        """Keep `encoded`, which holds `tokens`."""
        if not tokens:
            return
        self._kept.append(_Kept(tuple(tokens), encoded))
        while len(self._kept) > 1 and self.tokens > self._most:
            self._kept.pop(0)

    def take(self, wanted: Sequence[int]) -> E | None:
        """The one that has most of `wanted` already, cut to what it has of it; None if it is better to begin anew.

        One that has little of it is another context's, which will want it back: it is not taken.
        """
        common = [self._usable(kept, wanted) for kept in self._kept]
        chosen = max(range(len(common)), key=common.__getitem__, default=None)
        if chosen is None or common[chosen] * 2 < len(wanted):
            return None
        encoded = self._kept.pop(chosen).encoded
        encoded.cut(common[chosen])
        return encoded

    @staticmethod
    def _usable(kept: _Kept[E], wanted: Sequence[int]) -> int:
        common = common_length(kept.tokens, wanted)
        return common if kept.encoded.reaches(common) else 0


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    one, other = tuple(one), tuple(other)
    low, high = 0, min(len(one), len(other))
    while low < high:  # slices are compared far faster than one token after another
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
