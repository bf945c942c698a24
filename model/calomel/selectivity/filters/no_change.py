"""A suggestion that leaves the text as it is."""

from __future__ import annotations

from calomel.selectivity.proposal import Proposal


def no_change(proposal: Proposal) -> bool:
    """Whether every edit puts what stands there already, or there is none."""
    return all(proposal.text[start:end] == new for start, end, new in proposal.edits)
