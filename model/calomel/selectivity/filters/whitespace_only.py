"""A suggestion that says nothing new, only with other space between."""

from __future__ import annotations

from calomel.selectivity.proposal import Proposal


def whitespace_only(proposal: Proposal) -> bool:
    """Whether every edit leaves all characters but white space as they were."""
    return all("".join(proposal.text[start:end].split()) == "".join(new.split()) for start, end, new in proposal.edits)
