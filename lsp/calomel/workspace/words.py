"""Words of code as numbers: what two pieces of code have in common is found by them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final
from zlib import crc32

from calomel.workspace.languages import COMMON_KEYWORDS

_WORD: Final = re.compile(r"[^\W\d]\w+")
# fooBar, FOOBar, foo_bar and foo2bar are two words each.
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+")
_SHORTEST_PART: Final = 3
# Longer ones are data, such as encoded keys.
_LONGEST_WORD: Final = 64


def word_number(word: str) -> int:
    """The number of a word, the same in every process; two of 200,000 words share one by chance about five times."""
    return crc32(word.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=1 << 16)
def numbers_of(word: str) -> tuple[int, ...]:
    """The numbers of a word and of its parts in small letters; none of a keyword."""
    if word in COMMON_KEYWORDS or len(word) > _LONGEST_WORD:
        return ()
    parts = {part.lower() for part in _PART.findall(word) if len(part) >= _SHORTEST_PART}
    return tuple(word_number(each) for each in sorted({word, *(parts - COMMON_KEYWORDS)}))


def words_in(text: str) -> Counter[str]:
    """How often each word of at least two characters occurs."""
    return Counter(_WORD.findall(text))


def count_numbers(words: Mapping[str, int] | Iterable[str]) -> dict[int, int]:
    """How often the numbers of some words occur."""
    counted = words if isinstance(words, Mapping) else dict.fromkeys(words, 1)
    found: dict[int, int] = {}
    for word, count in counted.items():
        for number in numbers_of(word):
            found[number] = found.get(number, 0) + count
    return found
