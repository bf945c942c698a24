"""A suggestion that goes round in circles."""

from __future__ import annotations

from typing import Final

from calomel.selectivity.filters.around import split_lines
from calomel.selectivity.filters.letters import letters
from calomel.selectivity.proposal import Proposal

# From Tabby's removeLineEndsWithRepetition: a piece of three characters six times, one of ten characters four times.
_SHORT_PIECE: Final = 3
_SHORT_TIMES: Final = 6
_LONG_PIECE: Final = 10
_LONG_TIMES: Final = 4
_SEPARATOR: Final = 2
# Characters of a line's end that are looked at.
_LOOKED_AT: Final = 400
_LINES: Final = 80
# The same line so often, or the same block of lines twice, directly behind each other.
_LINE_TIMES: Final = 3
_LEAST_LINE_LETTERS: Final = 3
_LEAST_BLOCK_LETTERS: Final = 12
_LARGEST_BLOCK: Final = 12


def repeats_itself(proposal: Proposal) -> bool:
    """Whether its last line ends in a loop, or the same lines come again directly behind themselves.

    Numbers and other literals may repeat: tables do.
    """
    return any(_ends_in_loop(new) or _repeats_lines(new) for _, _, new in proposal.edits)


def _ends_in_loop(new: str) -> bool:
    line = new.rstrip()[-_LOOKED_AT:]
    line = line[max(line.rfind("\n"), line.rfind("\r")) + 1 :]
    for size in range(_SHORT_PIECE, (len(line) + _SEPARATOR) // _LONG_TIMES + 1):
        # The line's end is the same as what stands one piece before it; the last piece may lack its separator.
        same = size * ((_SHORT_TIMES if size < _LONG_PIECE else _LONG_TIMES) - 1) - _SEPARATOR
        if same + size <= len(line) and line[-same:] == line[-same - size : -size] and letters(line[-size:]) > 0:
            return True
    return False


def _repeats_lines(new: str) -> bool:
    lines = [line.rstrip() for line in split_lines(new)][:_LINES]
    lines = [line for line in lines if line]
    if len(lines) < _LINE_TIMES:
        return False
    for size in range(1, min(len(lines) // 2, _LARGEST_BLOCK) + 1):
        least, times = (_LEAST_LINE_LETTERS, _LINE_TIMES) if size == 1 else (_LEAST_BLOCK_LETTERS, 2)
        row = 0
        for at in range(len(lines) - size):
            row = row + 1 if lines[at] == lines[at + size] else 0
            if row >= size * (times - 1) and letters("".join(lines[at - size + 1 : at + 1])) >= least:
                return True
    return False
