"""The region of a file that a next-edit model may rewrite: a few whole lines around a place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

# After an accepted edit there is more of the same to do (Copilot's autoExpandEditWindowLines).
_EXTENDED_BELOW: Final = 10


@dataclass(frozen=True, slots=True)
class RegionBounds:
    """How large a region may be; a checkpoint says what it was trained with.

    Attributes:
        above: lines above the one that the region is for.
        below: lines below it.
        characters: of the whole region; lines at its ends are left out until it fits.
        context: tokens of prompt that a question about a region has at most; 0 for as many as any question.
    """

    # The numbers of Copilot and of Sweep.
    above: int = 2
    below: int = 5
    characters: int = 6000
    context: int = 0

    def extended(self) -> RegionBounds:
        """The same with more lines below."""
        return replace(self, below=max(self.below, _EXTENDED_BELOW))


def region_around(text: str, focus: int, bounds: RegionBounds) -> tuple[int, int]:
    """From where to where the lines around `focus` go; its own line alone when that is too long already.

    The nearest lines come first, of two equally near ones the lower: what is written next stands below.
    """
    start, end = line_start(text, focus), line_end(text, focus)
    above, below = bounds.above, bounds.below
    while above or below:
        if below and (below - bounds.below >= above - bounds.above or not above):
            below -= 1
            further = start, line_end(text, end) if end < len(text) else end
        else:
            above -= 1
            further = line_start(text, _before_line_end(text, start)) if start else start, end
        if further[1] - further[0] <= bounds.characters:
            start, end = further
        elif further[0] < start:
            above = 0
        else:
            below = 0
    return start, end


def line_start(text: str, offset: int) -> int:
    """Where the line of `offset` begins."""
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def line_end(text: str, offset: int) -> int:
    """Behind the line end of the line of `offset`."""
    ends = [at for at in (text.find("\n", offset), text.find("\r", offset)) if at >= 0]
    if not ends:
        return len(text)
    return min(ends) + (2 if text[min(ends) : min(ends) + 2] == "\r\n" else 1)


def _before_line_end(text: str, start: int) -> int:
    """Before the line end that stands right before `start`."""
    return start - (2 if text[start - 2 : start] == "\r\n" else 1)
