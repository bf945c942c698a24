"""A suggestion that undoes what the user has just changed."""

from __future__ import annotations

from typing import Final

from calomel.selectivity.filters.undone import done, trimmed, undone
from calomel.selectivity.proposal import Proposal

# Below this, a suggestion has a thought of its own: one that mends a typo deletes and writes a few of the same letters.
_MOST: Final = 0.75
_LEAST_CHARACTERS: Final = 4


def reverts_edit(proposal: Proposal) -> bool:
    """Whether any of it turns a change back, or whether most of it takes back, in both directions.

    A letter that was written or deleted alone may be a typo; what else only inserts or deletes has filters of its own.
    """
    past = {
        (each.start, each.end, each.gone)
        for each in done((*proposal.edited, *proposal.recent))
        if (each.gone and each.written) or len((each.gone or each.written).strip()) > 1
    }
    if past and any(edit in past for edit in trimmed(proposal.text, proposal.edits)):
        return True
    if not proposal.recent:
        return False
    back = undone(proposal)
    return (
        back.typed > 0 and back.restored > 0 and back.typed + back.restored >= _LEAST_CHARACTERS and back.share >= _MOST
    )
