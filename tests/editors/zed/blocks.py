"""How Zed cuts a region into blocks: the places where its numbered markers stand."""

from __future__ import annotations

from typing import Final

SHORTEST: Final = 6
LONGEST: Final = 16
_NUDGE: Final = 5
_BRACKETS: Final = ("}", "]", ")")
_WORDS: Final = ("break", "continue", "return", "throw", "end")


def boundaries(region: str) -> tuple[int, ...]:
    """Offsets of the markers: the beginning of the region, of each further block, and the end."""
    lines = region.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    firsts = [0]
    at = 1
    while at < len(lines):
        gathered, left = at - firsts[-1], len(lines) - at
        behind_blank = not lines[at - 1].strip() and bool(lines[at].strip())
        if (behind_blank and gathered >= SHORTEST and left >= SHORTEST) or gathered >= LONGEST:
            at = _good_start(lines, at)
            if at < len(lines):
                firsts.append(at)
        at += 1
    return (*(starts[first] for first in firsts), len(region))


def _good_start(lines: list[str], at: int) -> int:
    """A line near `at` that does not close what stands above it."""
    for place in range(at, min(at + _NUDGE + 1, len(lines))):
        word = lines[place].strip()
        if word and not word.startswith(_BRACKETS) and word.rstrip(";").split(" ")[0] not in _WORDS:
            return place
    return at
