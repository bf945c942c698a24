"""A suggestion that says again what the lines above it say."""

from __future__ import annotations

from typing import Final

from calomel.selectivity.filters.around import above, filled, head_of, rest_of, split_lines
from calomel.selectivity.filters.letters import letters
from calomel.selectivity.proposal import Proposal

# Lines that may stand twice: a bracket, `pass`, `else:`.
_LEAST_LETTERS: Final = 5
# What the user wrote of a line is meant; only the rest of it is the suggestion's.
_LEAST_WRITTEN: Final = 3


def repeats_above(proposal: Proposal) -> bool:
    """Whether its lines are those directly above, word for word and as many, or the brackets that one ends with."""
    return any(
        not proposal.text[start:end].strip() and _repeats(proposal.text, start, end, new)
        for start, end, new in proposal.edits
    )


def _repeats(text: str, start: int, end: int, new: str) -> bool:
    if letters(new) < _LEAST_WRITTEN or (new[-1:] not in {"\r", "\n"} and rest_of(text, end).strip()):
        return False
    head = head_of(text, start)
    own = filled(split_lines(head + new))
    # Where the cursor's line is done already, it is the first of those above.
    if head.strip() and new[:1] in {"\r", "\n"}:
        own = own[1:]
        others = [*above(text, start), head]
    else:
        others = above(text, start)
    if len(own) == 1 and own[0][0] in "([{" and others and others[-1].rstrip().endswith(own[0]):
        return True
    # A blank line between separates on purpose.
    others = [line.strip() for line in others[-len(own) :]]
    return bool(own) and own == others and letters("".join(own)) >= _LEAST_LETTERS
