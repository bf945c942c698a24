"""A suggestion that says what stands right behind the cursor already."""

from __future__ import annotations

from typing import Final

from calomel.selectivity.filters.around import LINE_END, head_of, rest_of
from calomel.selectivity.filters.letters import letters
from calomel.selectivity.proposal import Proposal

# Fewer letters may well stand twice: `a, a`.
_LEAST_LETTERS: Final = 3


def duplicate_of_suffix(proposal: Proposal) -> bool:
    """Whether all that it inserts follows its place: on its line, or in whole lines."""
    return any(start == end and _follows(proposal.text, start, new) for start, end, new in proposal.edits)


def _follows(text: str, at: int, new: str) -> bool:
    said = new.strip()
    rest = rest_of(text, at).strip()
    if not said:
        return False
    if rest and LINE_END.search(new.strip(" \t")) is None:
        if said == rest:
            return letters(said) > 0
        return rest.startswith(said) and letters(said) >= _LEAST_LETTERS and not _continues(said, rest[len(said) :])
    if head_of(text, at).strip() and LINE_END.match(new) is None:
        return False
    # Whole lines, which the next ones are the same as.
    following = text[at : at + len(new) + 256].strip()
    behind = following[len(said) :]
    return (
        following.startswith(said)
        and (not behind or LINE_END.match(behind) is not None)
        and letters(said) >= _LEAST_LETTERS
    )


def _continues(said: str, behind: str) -> bool:
    """Whether a word goes on: `print` before `printer` repeats nothing."""
    return _is_word(said[-1:]) and _is_word(behind[:1])


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
