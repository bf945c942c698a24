"""How much a text says: what may well stand twice beside each other says little."""

from __future__ import annotations

import re
from typing import Final

# Values that fill tables and default arguments.
_LITERAL: Final = re.compile(
    r"\b(?:0[xX][\da-fA-F_]+|\d[\w.]*|None|True|False|null|nil|true|false|undefined|NaN|nan|inf)\b"
)


def letters(text: str) -> int:
    """Letters of names and words; numbers, `None`, `true` and their like are none."""
    return sum(map(str.isalpha, _LITERAL.sub("", text)))
