"""A suggestion that touches a secret, shows the mask of one, or looks like one."""

from __future__ import annotations

import re
from typing import Final

from calomel.selectivity.filters.around import head_of
from calomel.selectivity.proposal import Proposal

# A secret is masked by asterisks, one for each character. Banners of comments have them too, but not inside of quotes,
# nor behind an equals sign.
_MASKED_VALUE: Final = re.compile(r"""["'`=:@]\s*\*{6,}|\*{6,}["'`@]""")
# Characters of the line before a text that say what it is, such as `password = `.
_NAMED_WITHIN: Final = 400


def secret(proposal: Proposal) -> bool:
    """Whether an edit touches what the model did not see, repeats its mask, or writes what would be masked itself."""
    return _touches(proposal) or any(
        _MASKED_VALUE.search(new) is not None or _would_be_masked(proposal, start, new)
        for start, _, new in proposal.edits
    )


def _touches(proposal: Proposal) -> bool:
    """Whether an edit replaces masked characters, or stands directly beside them."""
    text, masked = proposal.text, proposal.masked
    if not masked or text is masked:
        return False
    return any(
        text[max(0, start - 1) : end + 1] != masked[max(0, start - 1) : end + 1] for start, end, _ in proposal.edits
    )


def _would_be_masked(proposal: Proposal, start: int, new: str) -> bool:
    """Whether a new text is a secret, seen together with the line before it."""
    if not new.strip():
        return False
    before = head_of(proposal.text, start)[-_NAMED_WITHIN:]
    return proposal.mask(before + new)[len(before) :] != new
