"""A suggestion that leaves a bracket or a quote without its counterpart."""

from __future__ import annotations

import re
from typing import Final

from calomel.selectivity.filters.brackets import inside_of_string, loose
from calomel.selectivity.filters.openings import ends_open
from calomel.selectivity.proposal import Proposal

# Characters of the text above and below that a counterpart is looked for in.
_ABOVE: Final = 3000
_BELOW: Final = 1500
# In a text beyond this, nobody counts where strings of several lines begin.
_LONGEST: Final = 1_000_000
_NOTABLE: Final = re.compile(r"""[()\[\]{}"'`#]|/[*/]|\*/""")


def unbalanced(proposal: Proposal) -> bool:
    """Whether more of them are alone behind it than before.

    What opens at the end of its line wants more lines, and may stay open.
    """
    text, language_id = proposal.text, proposal.language_id
    if not proposal.edits or len(text) > _LONGEST or _evidently_balanced(proposal):
        return False
    first, last = proposal.edits[0][0], proposal.edits[-1][1]
    start = text.rfind("\n", 0, max(0, first - _ABOVE)) + 1
    end = text.find("\n", min(len(text), last + _BELOW))
    end = len(text) if end < 0 else end
    code = inside_of_string(text, start, language_id)
    if code is None or code > first:
        return False
    before = loose(text[code:end], language_id)
    parts, at = [], code
    for edit_start, edit_end, new in proposal.edits:
        parts += (text[at:edit_start], new)
        at = edit_end
    after = loose("".join([*parts, text[at:end]]), language_id)
    if before is None or after is None:
        return False
    if ends_open(proposal):
        return after.closing + after.quotes > before.closing + before.quotes
    return sum(after) > sum(before)


def _evidently_balanced(proposal: Proposal) -> bool:
    """Whether neither the new texts nor the old ones have anything that a counterpart could be missing of."""
    for start, end, new in proposal.edits:
        for piece in (new, proposal.text[start:end]):
            if _NOTABLE.search(piece):
                return False
    return True
