"""Where a text may be cut without tearing apart what a person sees as one character.

A short form of Unicode's extended grapheme clusters (UAX #29): CR LF, combining marks, joiners, variation selectors,
skin tones and flags stay whole. Hangul jamo and Indic conjuncts are left to what their marks say.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from calomel.prompts import parts

_JOINER: Final = "\u200d"
_MARKS: Final = frozenset({"Mn", "Me", "Mc"})


def is_boundary(text: str, at: int) -> bool:
    """Whether `text` may be cut before the character at offset `at`."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before == "\r" and after == "\n":
        return False
    if after < "\u0300":
        return before != _JOINER
    if _JOINER in {before, after} or unicodedata.category(after) in _MARKS or _is_skin_tone(after):
        return False
    if _is_flag_letter(before) and _is_flag_letter(after):
        return _flag_letters_before(text, at) % 2 == 0
    return True


def common_prefix(first: str, second: str) -> int:
    """Length of the longest common beginning that ends at a boundary of both."""
    count = parts.common_prefix(first, second)
    while count and not (is_boundary(first, count) and is_boundary(second, count)):
        count -= 1
    return count


def common_suffix(first: str, second: str) -> int:
    """Length of the longest common end that begins at a boundary of both."""
    count = parts.common_prefix(first[::-1], second[::-1])
    while count and not (is_boundary(first, len(first) - count) and is_boundary(second, len(second) - count)):
        count -= 1
    return count


def _is_skin_tone(character: str) -> bool:
    return "\U0001f3fb" <= character <= "\U0001f3ff"


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, at: int) -> int:
    count = 0
    while count < at and _is_flag_letter(text[at - 1 - count]):
        count += 1
    return count
