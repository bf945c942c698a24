"""Telling what was generated from what was named: random characters change their kind all the time, words do not."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

# What a reader takes for one word or number: `getHTTPResponse2` has four.
_PIECE: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
# Mean length of these pieces. Random letters and digits of base 62 have 2.2, of hexadecimal 2.1, of lower-case base 36
# 2.5; names in the standard library of Python have more than 5.
_LONGEST_PIECES: Final = 3.0
# The 180 pairs of letters that make 84 % of all pairs in the 12,939 words of Python's standard library; of random
# letters they make 27 %.
_TABLE: Final = (
    "abacadagaialamanaparasataybabebiblbobucacechcickclcocrctcudadedidodrdsdueaecedeeefegelemeneperesetevexfafefffi"
    "flfofrgegigrhahehihoiaibicidieifigiliminioipirisitivizkelaldlelilllolsltlymamemimompnancndnenfngninonsntobocod"
    "olomonoooporosotouowpapepiplpoppprptqurarcrdrerirmrorrrsrtrysascseshsisospssstsutatctethtitltotptrtstttutyubue"
    "ulumunupurusutvaveviwawixtypze"
)
_PAIRS: Final = frozenset(_TABLE[at : at + 2] for at in range(0, len(_TABLE), 2))
# Above the one there are words, however short their pieces; below the other there are none, however long.
_SURELY_WORDS: Final = 0.7
_PERHAPS_WORDS: Final = 0.55
_FEWEST_PAIRS: Final = 8
_LETTERS: Final = re.compile(r"[a-z]{2,}")
_HEX: Final = re.compile(r"[0-9a-f]{24,}|[0-9A-F]{24,}")
_ENOUGH: Final = 256


def looks_random(text: str) -> bool:
    """Whether ASCII letters and digits follow each other as no names do; short texts may look so by accident."""
    text = text[:_ENOUGH]
    pieces = _PIECE.findall(text)
    if len(pieces) < 2:  # noqa: PLR2004 - one word or one number
        return False
    digits, lower, upper = any(map(str.isdigit, pieces)), any(map(_has_lower, pieces)), any(map(_has_upper, pieces))
    if digits + lower + upper < 2:  # noqa: PLR2004 - of one kind
        return False
    if _HEX.search(text):
        return True
    pairs = [a + b for run in _LETTERS.findall(text.lower()) for a, b in pairwise(run)]
    wordlike = sum(map(_PAIRS.__contains__, pairs)) / len(pairs) if len(pairs) >= _FEWEST_PAIRS else None
    if sum(map(len, pieces)) <= _LONGEST_PIECES * len(pieces):
        return wordlike is None or wordlike < _SURELY_WORDS
    return digits and wordlike is not None and wordlike < _PERHAPS_WORDS


def _has_lower(text: str) -> bool:
    return text[-1].islower()


def _has_upper(text: str) -> bool:
    return text[0].isupper()
