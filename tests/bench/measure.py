"""Words and signs instead of tokens, for benches without a model."""

from __future__ import annotations

import re

_PIECE = re.compile(r"\w+|\s+|[^\w\s]")


def count(text: str) -> int:
    return len(_PIECE.findall(text))
