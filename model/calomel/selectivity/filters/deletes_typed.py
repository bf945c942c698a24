"""A suggestion that deletes what the user has just written."""

from __future__ import annotations

from typing import Final

from calomel.selectivity.filters.undone import trimmed, undone
from calomel.selectivity.proposal import Proposal

_MOST: Final = 0.75
# A letter or two out of a longer text mends a typo.
_MENDED: Final = 2
_TIMES: Final = 4


def deletes_typed(proposal: Proposal) -> bool:
    """Whether it only deletes, and most of that was just written."""
    if proposal.kind == "fill" or not proposal.recent:
        return False
    edits = trimmed(proposal.text, proposal.edits)
    if not edits or any(new.strip() for _, _, new in edits):
        return False
    back = undone(proposal)
    written = sum(len(each.inserted) for each in proposal.recent)
    mends = back.deleted <= _MENDED and written >= _TIMES * back.deleted
    return not mends and back.deleted > 0 and back.typed >= _MOST * back.deleted
