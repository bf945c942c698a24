"""A suggestion that loses lines: what people complain of most, and the sign of an answer that was cut."""

from __future__ import annotations

from typing import Final

from calomel.selectivity.filters.around import filled, head_of, rest_of, split_lines
from calomel.selectivity.proposal import Proposal

_LOST_LINES: Final = 3


def deletes_too_much(proposal: Proposal) -> bool:
    """Whether more than three filled lines are lost and not replaced by others.

    Lines that are said in fewer ones count as lost only at the end of the region: there, the rest of an answer may be
    missing.
    """
    text = proposal.text
    lost = shortened = 0
    for start, end, new in proposal.edits:
        head, rest = head_of(text, start), rest_of(text, end)
        fewer = _filled(head + text[start:end] + rest) - _filled(head + new + rest)
        if fewer > 0 and new.strip() and not _ends_region(proposal, end):
            shortened += fewer
        else:
            lost += fewer
    return lost > _LOST_LINES or lost + shortened > 3 * _LOST_LINES


def _ends_region(proposal: Proposal, end: int) -> bool:
    """Whether nothing of the region is left behind `end`."""
    return proposal.region is not None and not proposal.text[end : proposal.region[1]].strip()


def _filled(text: str) -> int:
    return len(filled(split_lines(text)))
