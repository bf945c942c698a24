"""A suggestion that ends where the model's limit was, and not where its thought did."""

from __future__ import annotations

from calomel.selectivity.filters.around import LINE_END
from calomel.selectivity.proposal import Proposal


def cut_off(proposal: Proposal) -> bool:
    """Whether half of it is missing.

    Half a region would delete the other half. A text at the cursor may end early once it has a whole line.
    """
    if not proposal.cut_off or proposal.kind == "edit":
        return proposal.cut_off
    return not any(new[: ending.start()].strip() for _, _, new in proposal.edits for ending in LINE_END.finditer(new))
