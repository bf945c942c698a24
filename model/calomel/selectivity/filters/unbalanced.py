"""A suggestion that leaves a bracket or a quote without its counterpart."""

from __future__ import annotations

import re
from typing import Final

from calomel.selectivity.filters.around import head_of
from calomel.selectivity.filters.brackets import Loose, behind_string, knows, loose
from calomel.selectivity.filters.openings import ends_open, may_go_on
from calomel.selectivity.proposal import Proposal

# Characters of the text above and below that a counterpart is looked for in.
_ABOVE: Final = 1600
_BELOW: Final = 800
# In a text beyond this, nobody counts where strings of several lines begin.
_LONGEST: Final = 1_000_000
# What makes strings and comments of other text.
_CHANGING: Final = re.compile(r"""["'`#/*]""")


def unbalanced(proposal: Proposal) -> bool:
    """Whether more of them are surely alone behind it than before.

    What opens at the end of its line wants more lines, and may stay open; so may what opens in a text at the cursor
    with nothing behind it, for half of a line is often taken. Inside of a string of several lines nothing has to be
    balanced.
    """
    text, language_id = proposal.text, proposal.language_id
    if not proposal.edits or not knows(language_id) or len(text) > _LONGEST or _evidently_balanced(proposal):
        return False
    first, last = proposal.edits[0][0], proposal.edits[-1][1]
    line = first - len(head_of(text, first))
    start = text.rfind("\n", 0, max(0, first - _ABOVE)) + 1
    end = text.find("\n", min(len(text), last + _BELOW)) + 1 or len(text)
    code = behind_string(text, start, language_id)
    if code is None or code > line:
        return False
    above = loose(text[code:line], language_id, whole=code == 0)
    if above.long or loose(text[line:first], language_id).long:
        return False
    parts: list[str] = []
    at = line
    for edit_start, edit_end, new in proposal.edits:
        parts += (text[at:edit_start], new)
        at = edit_end
    parts.append(text[at:end])
    before = loose(text[line:end], language_id, whole=code == 0, before=above)
    after = loose("".join(parts), language_id, whole=code == 0, before=above)
    return _is_worse(proposal, before, after, to_end=end == len(text))


def _is_worse(proposal: Proposal, before: Loose, after: Loose, *, to_end: bool) -> bool:
    if may_go_on(proposal):
        return after.closing > before.closing
    if ends_open(proposal):
        return after.closing + after.quotes > before.closing + before.quotes
    return after.total > before.total or (to_end and len(after.waiting) > len(before.waiting))


def _evidently_balanced(proposal: Proposal) -> bool:
    """Whether each new and each old piece is balanced by itself, and makes no string and no comment."""
    for start, end, new in proposal.edits:
        for piece in (new, proposal.text[start:end]):
            if _CHANGING.search(piece):
                return False
            alone = loose(piece, proposal.language_id, whole=True)
            if alone.total or alone.waiting:
                return False
    return True
