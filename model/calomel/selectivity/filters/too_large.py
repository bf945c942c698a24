"""A suggestion that nobody reads before taking it."""

from __future__ import annotations

from typing import Final

from calomel.selectivity.filters.around import filled, split_lines
from calomel.selectivity.proposal import Proposal

# Editors show about a dozen lines of a suggestion (cursortab's max_visible_lines); a screen has three times as many.
_LINES: Final = 36
_CHARACTERS: Final = 4000


def too_large(proposal: Proposal) -> bool:
    """Whether it writes more filled lines, or more characters, than fit on a screen."""
    written = [new for _, _, new in proposal.edits]
    return sum(map(len, written)) > _CHARACTERS or sum(len(filled(split_lines(new))) for new in written) > _LINES
