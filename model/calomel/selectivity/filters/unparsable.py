"""A suggestion that makes a syntax error."""

from __future__ import annotations

from calomel.selectivity.filters.openings import ends_open
from calomel.selectivity.proposal import Proposal


def unparsable(proposal: Proposal) -> bool:
    """Whether there are more syntax errors behind it than before.

    Text that opens a block, a list or a sentence at the end of its line is not finished yet, and may be one.
    """
    if ends_open(proposal):
        return False
    counted = proposal.errors()
    return counted is not None and counted[1] > counted[0]
