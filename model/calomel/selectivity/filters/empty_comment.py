"""A comment that is begun and says nothing."""

from __future__ import annotations

import re
from typing import Final

from calomel.selectivity.filters.around import above, head_of, rest_of, split_lines
from calomel.selectivity.proposal import Proposal

# A mark that opens or closes a comment of several lines says where it is, even alone.
_WORDLESS: Final = re.compile(r"\s*(?:#+|//+!?|--+|;+|%+|/\*+\s*\*+/|<!--\s*-->)\s*")
_STARTS: Final = ("#", "//", "--", ";", "%", "/*", "*", "<!--")


def empty_comment(proposal: Proposal) -> bool:
    """Whether a text at the cursor makes comments without words, where no comment stands above."""
    if proposal.kind != "fill" or len(proposal.edits) != 1:
        return False
    start, end, new = proposal.edits[0]
    head = head_of(proposal.text, start)
    if not new.strip() or rest_of(proposal.text, end).strip():
        return False
    lines = [line for line in split_lines(head + new) if line.strip()]
    if not all(_WORDLESS.fullmatch(line) for line in lines):
        return False
    if head.strip() and _WORDLESS.fullmatch(head):
        return False  # the user has begun it: the model only goes on with a ruler
    near = above(proposal.text, start)[-1:]
    return not near or not near[0].strip().startswith(_STARTS)
