"""A suggestion that says what the lines below it say already."""

from __future__ import annotations

import re
from typing import Final

from rapidfuzz.distance import Levenshtein

from calomel.selectivity.filters.around import below, filled, head_of, rest_of, split_lines
from calomel.selectivity.filters.letters import letters
from calomel.selectivity.proposal import Proposal

_COMPARED_LINES: Final = 3
# Lines that may stand twice: a bracket, `pass`, `else:`.
_LEAST_LETTERS: Final = 5
_LEAST_WRITTEN: Final = 3
# Of the shorter text; from Tabby's dropDuplicated.
_ALLOWED_DISTANCE: Final = 0.05
# A long name with one letter more or less is the same name; a short one, or another digit, is another.
_LONG_WORD: Final = 5
_WORD: Final = re.compile(r"\w+")


def repeats_below(proposal: Proposal) -> bool:
    """Whether its first three filled lines equal those below, give or take a twentieth."""
    return any(
        not proposal.text[start:end].strip() and _repeats(proposal, start, end, new)
        for start, end, new in proposal.edits
    )


def _repeats(proposal: Proposal, start: int, end: int, new: str) -> bool:
    if letters(new) < _LEAST_WRITTEN:
        return False
    head, rest = head_of(proposal.text, start), rest_of(proposal.text, end)
    lines = split_lines(head + new)
    following = below(proposal.text, end)
    if new[:1] in {"\r", "\n"}:
        lines = lines[1:]
    if rest.strip():
        if lines[-1].strip():
            return False  # the last line goes on with what stands behind it
        following = [rest, *following]
    own = filled(lines, _COMPARED_LINES)
    others = filled(following, len(own))
    if not own or len(others) < len(own):
        return False
    first, second = "\n".join(own), "\n".join(others)
    if letters(first) < _LEAST_LETTERS:
        return False
    return first == second or (proposal.kind == "fill" and _alike(first, second))


def _alike(one: str, other: str) -> bool:
    allowed = int(_ALLOWED_DISTANCE * min(len(one), len(other)))
    if Levenshtein.distance(one, other, score_cutoff=allowed + 1) > max(1, allowed):
        return False
    words, others = _WORD.findall(one), _WORD.findall(other)
    return len(words) == len(others) and all(map(_same, words, others))


def _same(one: str, other: str) -> bool:
    """`value` and `values` are, `x1` and `x2` or `width` and `height` are not."""
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) >= _LONG_WORD and long.startswith(short) and long[len(short) :].isalpha())
