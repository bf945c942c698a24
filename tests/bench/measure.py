"""Words and signs instead of tokens, for benches without a model."""

from __future__ import annotations

import re

_PIECE = re.compile(r"\w+|\s+|[^\w\s]")


class PlainMeasure:
    def count(self, text: str) -> int:
        return len(_PIECE.findall(text))

    def boundary(self, text: str) -> int:
        return max((piece.start() for piece in _PIECE.finditer(text)), default=0)
