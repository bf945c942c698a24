"""Telling what was generated from what was named: random characters change their kind all the time, words do not."""

from __future__ import annotations

import re
from typing import Final

# What a reader takes for one word or number: `getHTTPResponse2` has four.
_PIECE: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
# Mean length of these pieces. Random letters and digits of base 62 have 2.2, of hexadecimal 2.1, of lower-case base 36
# 2.5; names in the standard library of Python have more than 5.
_LONGEST_PIECES: Final = 3.0
_ENOUGH: Final = 256


def looks_random(text: str) -> bool:
    """Whether ASCII letters and digits follow each other as no names do; short texts may look so by accident."""
    pieces = _PIECE.findall(text[:_ENOUGH])
    if len(pieces) < 2:  # noqa: PLR2004 - one word or one number
        return False
    kinds = any(map(str.isdigit, pieces)) + any(map(_has_lower, pieces)) + any(map(_has_upper, pieces))
    return kinds > 1 and sum(map(len, pieces)) <= _LONGEST_PIECES * len(pieces)


def _has_lower(text: str) -> bool:
    return text[-1].islower()


def _has_upper(text: str) -> bool:
    return text[0].isupper()
