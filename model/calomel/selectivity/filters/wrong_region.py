"""A suggestion that changes other lines than those it was asked for."""

from __future__ import annotations

from typing import Final

from calomel.selectivity.filters.around import filled, split_lines
from calomel.selectivity.proposal import Proposal

# Zed's "wrong editable region": the first hunk starts with so many deleted lines.
_DELETED_LINES: Final = 3


def wrong_region(proposal: Proposal) -> bool:
    """Whether an edit is outside of the region, or the whole region was answered some lines too far down.

    Such an answer deletes the region's first lines and writes others behind its last ones.
    """
    if proposal.region is None or not proposal.edits:
        return False
    first, last = proposal.region
    if any(start < first or end > last for start, end, _ in proposal.edits):
        return True
    start, end, new = proposal.edits[0]
    if start > first or new.strip() or len(proposal.edits) == 1:
        return False
    gone = len(filled(split_lines(proposal.text[start:end])))
    at, until, added = proposal.edits[-1]
    return (
        gone >= _DELETED_LINES
        and not proposal.text[until:last].strip()
        and not proposal.text[at:until].strip()
        and bool(added.strip())
    )
