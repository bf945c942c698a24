"""A suggestion that loses lines: what people complain of most, and the sign of an answer that was cut."""

from __future__ import annotations

from typing import Final

from calomel.selectivity.filters.around import filled, head_of, rest_of, split_lines
from calomel.selectivity.proposal import Proposal

_LOST_LINES: Final = 3


def deletes_too_much(proposal: Proposal) -> bool:
    """Whether more than three filled lines are lost and not replaced by others."""
    lost = 0
    for start, end, new in proposal.edits:
        if start == end:
            continue
        head, rest = head_of(proposal.text, start), rest_of(proposal.text, end)
        lost += _filled(head + proposal.text[start:end] + rest) - _filled(head + new + rest)
    return lost > _LOST_LINES


def _filled(text: str) -> int:
    return len(filled(split_lines(text)))
