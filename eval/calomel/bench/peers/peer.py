"""What a peer does: decode left to right behind a prompt of which it has seen most before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

Ends = Callable[[Sequence[int]], bool]
"""Whether an answer is complete; asked whenever it has grown by a token."""


class PeerUnavailableError(Exception):
    """The peer is not installed, or can not read these weights; the message says which and what to do."""


class Peer(Protocol):
    """One engine over one set of weights. Not thread-safe."""

    @property
    def name(self) -> str:
        """As in the report's keys."""

    @property
    def settings(self) -> str:
        """Version, number type and threads, in words."""

    @property
    def read(self) -> int:
        """How many tokens of the last prompt it had to read anew."""

    def decode(self, prompt: Sequence[int], most: int, end: int, ends: Ends) -> list[int]:
        """At most `most` greedy tokens behind `prompt`, without the `end` token, as far as `ends` lets it come.

        What it remembers of the prompt before is used for what both begin with.
        """

    def close(self) -> None:
        """Give its memory back."""


def common_beginning(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with, found by halves: slices are compared much faster than tokens in a loop."""
    least, most = 0, min(len(one), len(other))
    if list(one[:most]) == list(other[:most]):
        return most
    while most - least > 1:
        middle = (least + most) // 2
        if list(one[least:middle]) == list(other[least:middle]):
            least = middle
        else:
            most = middle
    return least
