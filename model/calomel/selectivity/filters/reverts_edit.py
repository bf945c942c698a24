"""A suggestion that undoes what the user has just changed."""

from __future__ import annotations

from typing import Final

from calomel.selectivity.filters.undone import done, trimmed, undone
from calomel.selectivity.proposal import Proposal

# Below this, a suggestion has a thought of its own: one that mends a typo deletes and writes a few of the same letters.
_MOST: Final = 0.75
_LEAST_CHARACTERS: Final = 4


def reverts_edit(proposal: Proposal) -> bool:
    """Whether it puts back exactly what a change replaced, or whether most of it takes back, in both directions.

    What only inserts or only deletes has filters of its own.
    """
    if not proposal.recent:
        return False
    edits = trimmed(proposal.text, proposal.edits)
    past = {(each.start, each.end, each.gone) for each in done(proposal.recent) if each.gone and each.written}
    if edits and all(edit in past for edit in edits):
        return True
    back = undone(proposal)
    return (
        back.typed > 0 and back.restored > 0 and back.typed + back.restored >= _LEAST_CHARACTERS and back.share >= _MOST
    )
