"""A suggestion that brings back what the user has just deleted."""

from __future__ import annotations

from typing import Final

from calomel.selectivity.filters.undone import done, near, trimmed
from calomel.selectivity.proposal import Proposal

# A single character is deleted to be typed better, and much begins with the same one.
_LEAST_BEGINNING: Final = 2


def reinserts_deleted(proposal: Proposal) -> bool:
    """Whether an insertion begins with what was deleted at its place, or is the beginning of it."""
    past = [each for each in done(proposal.recent) if each.gone.strip() and not each.written]
    if not past:
        return False
    for start, end, new in trimmed(proposal.text, proposal.edits):
        back = new.strip()
        if start < end or not back:
            continue
        for each in past:
            gone = each.gone.strip()
            if (gone.startswith(back) or (len(gone) >= _LEAST_BEGINNING and back.startswith(gone))) and near(
                proposal, start, each.start
            ):
                return True
    return False
