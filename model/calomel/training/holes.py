"""Where the holes are cut: kinds of hole, at any character of a text."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Final

from calomel.training.config import HoleMix

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
# Longest hole in characters: a canvas of 64 tokens rarely holds more.
_LONGEST: Final = 220
_TRIES: Final = 6


@dataclass(frozen=True, slots=True)
class Hole:
    """Characters [start, end) of a text; empty when nothing is to be inserted."""

    start: int
    end: int
    kind: str


def cut(text: str, low: int, high: int, mix: HoleMix, rng: random.Random) -> Hole:
    """A random hole of `text` that starts in [low, high).

    A kind that does not fit at the place that was drawn is drawn again a few times; then the rest of the line is taken.
    """
    kinds = ("rest_of_line", "inside_line", "inside_token", "inside_indent", "several_lines", "nothing")
    shares = [getattr(mix, kind) for kind in kinds]
    for _ in range(_TRIES):
        kind = rng.choices(kinds, shares)[0]
        hole = _of_kind(kind, text, rng.randrange(low, high), rng)
        if hole is not None and low <= hole.start < high and hole.end - hole.start <= _LONGEST:
            return hole
    start = rng.randrange(low, high)
    return Hole(start, min(_line_end(text, start), start + _LONGEST), "rest_of_line")


def _of_kind(kind: str, text: str, at: int, rng: random.Random) -> Hole | None:  # noqa: PLR0911  (one return a kind)
    begin, end = text.rfind("\n", 0, at) + 1, _line_end(text, at)
    line = text[begin:end]
    indent = len(line) - len(line.lstrip())
    if kind == "nothing":
        # Either nothing at all, or up to two characters.
        return Hole(at, min(len(text), at + rng.choice((0, 0, 1, 2))), kind)
    if not line.strip():
        return None
    if kind == "rest_of_line":
        start = rng.randrange(begin + indent, end)
        return Hole(start, end, kind)
    if kind == "inside_indent":
        return Hole(begin + rng.randrange(indent), end, kind) if indent else None
    if kind == "inside_token":
        words = list(_WORD.finditer(line))
        if not words:
            return None
        word = rng.choice(words)
        start = rng.randrange(word.start() + 1, word.end())
        return Hole(begin + start, begin + rng.randrange(start, word.end()) + 1, kind)
    if kind == "inside_line":
        if len(line) - indent < 4:  # noqa: PLR2004  (nothing on both sides is left of a shorter one)
            return None
        start = rng.randrange(begin + indent, end - 1)
        return Hole(start, rng.randrange(start + 1, end), kind)
    start = begin + indent if rng.random() < 0.5 else rng.randrange(begin + indent, end)  # noqa: PLR2004
    stop = end
    for _ in range(rng.choice((1, 1, 2, 3))):
        stop = _line_end(text, min(stop + 1, len(text)))
    return Hole(start, stop, kind)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    if end < 0:
        return len(text)
    return end - 1 if end > at and text[end - 1] == "\r" else end
