"""Encoded contexts that no request uses, for networks whose keys and values are not in pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from calomel.engine.cache import common_beginning
from calomel.engine.job import Encoded


class Spare(Encoded, Protocol):
    """What can be kept for another request."""

    @property
    def capacity(self) -> int:
        """Tokens that there is room for."""

    def reaches(self, length: int) -> bool:
        """Whether it can go back to its first `length` tokens; a sliding window forgets what is far behind."""

    def cut(self, length: int) -> None:
        """Go back to the first `length` tokens."""


E = TypeVar("E", bound=Spare)


class Spares(Generic[E]):
    """Encoded contexts, kept for the next keystroke in the same document.

    Args:
        most: tokens that they may have room for, together; the most recently used one stays whatever its size.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        # Least recently used first.
        self._kept: list[tuple[tuple[int, ...], E]] = []

    def put(self, tokens: Sequence[int], encoded: E) -> None:
        """Keep `encoded`, which holds `tokens`; the least recently used ones make room."""
        self._kept.append((tuple(tokens), encoded))
        while len(self._kept) > 1 and sum(encoded.capacity for _, encoded in self._kept) > self._most:
            self._kept.pop(0)

    def take(self, wanted: Sequence[int]) -> E | None:
        """The one that shares most of `wanted`, cut to the shared part; None if it is better to start afresh.

        After a keystroke it is that of the previous answer: nothing of the context has to be copied. One that shares
        little belongs to another context, which will want it back: it is not taken.
        """
        common = [_usable(tokens, encoded, tuple(wanted)) for tokens, encoded in self._kept]
        sizes = [(count, encoded.capacity) for count, (_, encoded) in zip(common, self._kept, strict=True)]
        chosen = max(range(len(sizes)), key=sizes.__getitem__, default=None)
        if chosen is None or common[chosen] * 2 < len(wanted):
            return None
        encoded = self._kept.pop(chosen)[1]
        encoded.cut(common[chosen])
        return encoded


def _usable(tokens: tuple[int, ...], encoded: Spare, wanted: tuple[int, ...]) -> int:
    common = common_beginning(tokens, wanted)
    return common if encoded.reaches(common) else 0
