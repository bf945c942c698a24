"""Text that is left open on purpose, for the next lines to go on with."""

from __future__ import annotations

import re
from typing import Final

from calomel.selectivity.filters.around import head_of, rest_of
from calomel.selectivity.proposal import Proposal

# A bracket, a colon, a comma, an operator, or a word that wants something behind it, at the end of a line.
_OPEN: Final = re.compile(
    r"(?:[(\[{:,.=+\-*/%&|<>?!^~\\@]|\b(?:and|or|not|in|is|return|if|else|elif|do|then|begin|function|def|class|new|"
    r"throw|raise|import|from|async|await|yield|const|let|var|case|where|try|finally|type|struct|enum|impl|fn|func))\s*\Z"
)


def may_go_on(proposal: Proposal) -> bool:
    """Whether it is text at the cursor with nothing behind it on the line: whoever takes it types on from there."""
    return proposal.kind == "fill" and all(not rest_of(proposal.text, end).strip() for _, end, _ in proposal.edits[-1:])


def ends_open(proposal: Proposal) -> bool:
    """Whether the last line that it writes ends in something that has to go on, with no word behind it."""
    if not proposal.edits:
        return False
    start, end, new = proposal.edits[-1]
    line = (head_of(proposal.text, start) + new).rstrip()[-200:]
    return (
        bool(new.strip()) and not rest_of(proposal.text, end).strip(" \t)]}\"'`;,") and _OPEN.search(line) is not None
    )
