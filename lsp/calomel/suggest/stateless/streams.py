"""The edits of clients that send the last few with every request, put together to a stream that only grows.

A stream that loses its beginning with every request would never be found in the cache.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from calomel.prompts.parts import Hunk

_KEPT: Final = 256
_LONGEST: Final = 64


@dataclass(frozen=True, slots=True)
class Stream:
    """Edits, oldest first. While `hops` stays the same, edits are only added at the end."""

    hunks: tuple[Hunk, ...] = ()
    hops: int = 0


class Streams:
    """The streams of the last clients and files, by key."""

    def __init__(self) -> None:
        self._streams: OrderedDict[str, Stream] = OrderedDict()

    def follow(self, key: str, hunks: tuple[Hunk, ...]) -> Stream:
        """The stream of `key` that ends with `hunks`, which are what the client shows now."""
        known = self._streams.get(key, Stream())
        stream = _joined(known, hunks)
        self._streams[key] = stream
        self._streams.move_to_end(key)
        while len(self._streams) > _KEPT:
            self._streams.popitem(last=False)
        return stream


def _joined(known: Stream, hunks: tuple[Hunk, ...]) -> Stream:
    for first in range(len(known.hunks)):
        rest = known.hunks[first:]
        if len(rest) <= len(hunks) and hunks[: len(rest)] == rest:
            grown = (*known.hunks[:first], *hunks)
            if len(grown) <= _LONGEST:
                return Stream(grown, known.hops)
            break
    return Stream(hunks, known.hops + 1)
