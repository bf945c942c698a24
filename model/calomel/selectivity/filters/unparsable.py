"""A suggestion that makes a syntax error."""

from __future__ import annotations

from typing import Final

from calomel.selectivity.filters.openings import ends_open, may_go_on
from calomel.selectivity.proposal import Proposal

# Around errors that are there, a parser guesses: among many it finds more or fewer by chance.
_TRUSTED: Final = 1


def unparsable(proposal: Proposal) -> bool:
    """Whether there are more syntax errors behind it than before, where there were at most one.

    Text that opens a block, a list or a sentence at the end of its line is not finished yet. At the cursor with nothing
    behind it, half of a line is as often right as a whole one: an error there says nothing.
    """
    if may_go_on(proposal) or ends_open(proposal):
        return False
    counted = proposal.errors()
    return counted is not None and counted[0] <= _TRUSTED and counted[1] > counted[0]
