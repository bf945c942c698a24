"""Answers that say again what a neighbouring line says."""

from __future__ import annotations

from typing import Final

from rapidfuzz.distance import Levenshtein

# Lines that may stand twice: a bracket, `pass`, `else:`.
_MIN_LETTERS: Final = 5
_COMPARED_LINES: Final = 3
# Of the shorter text; from Tabby's dropDuplicated.
_ALLOWED_DISTANCE: Final = 0.05


def repeats_below(line_prefix: str, text: str, below: str) -> bool:
    """Whether the first three lines that are not blank equal those below the cursor's line, give or take a twentieth.

    Args:
        line_prefix: the cursor's line up to the cursor.
        text: the answer.
        below: everything behind the cursor's line.
    """
    own = _lines(line_prefix + text) if text.lstrip(" \t")[:1] not in {"\r", "\n"} else _lines(text)
    others = _lines(below)[: len(own)]
    if not own or len(others) < len(own):
        return False
    first, second = "\n".join(own), "\n".join(others)
    if sum(map(str.isalnum, first)) < _MIN_LETTERS:
        return False
    allowed = max(1, int(_ALLOWED_DISTANCE * min(len(first), len(second))))
    if len(first) <= 2 * _MIN_LETTERS:
        allowed = 0  # `x1 = y1` and `x2 = y2` differ in what counts
    return Levenshtein.distance(first, second, score_cutoff=allowed) <= allowed


def repeats_above(line_prefix: str, text: str, above: str) -> bool:
    """Whether the cursor's line becomes the same as the line above it, and nothing follows."""
    own, others = _lines(line_prefix + text, limit=2), _lines(above)
    line = above.splitlines()[-1].strip() if above.splitlines() else ""
    return len(own) == 1 and bool(others) and own[0] == line and sum(map(str.isalnum, line)) >= _MIN_LETTERS


def _lines(text: str, limit: int = _COMPARED_LINES) -> list[str]:
    """The first lines that are not blank, without the space around them."""
    found: list[str] = []
    for line in text.splitlines():
        if line.strip():
            found.append(line.strip())
            if len(found) == limit:
                break
    return found
