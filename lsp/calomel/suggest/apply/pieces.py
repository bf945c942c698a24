"""Lines of a snippet in the place of lines of the original."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """One replacement.

    Attributes:
        start, end: lines of the original that go; none of them where both are the same.
        first, last: lines of the snippet that come, `last` excluded.
        shift: columns that they are indented further.
        apart_before, apart_after: empty lines wanted next to it where the original has none.
    """

    start: int
    end: int
    first: int
    last: int
    shift: int = 0
    apart_before: int = 0
    apart_after: int = 0


# The pieces that one run of the snippet comes to.
Reading = tuple[Piece, ...]
