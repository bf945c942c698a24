"""Which lines of a snippet are which lines of the original, best in all.

A dynamic programme over both, row by row: a line of the snippet is one of the original's, or it is new; between two
lines of one run that are the original's, lines of the original may be missing, which costs a little; a marker may stand
for any number of lines. Run from both ends, it also says how good the best alignment with any one pair would be, and so
which pairs could as well be others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

# What leaving out lines of the original costs, in the unit of a matched line: little, but a nearer match is better.
_OPEN: Final = np.float32(0.4)
_EACH: Final = np.float32(0.005)
# Another place that is less good by no more than this is as good.
_CLOSE: Final = 0.25

# Of a line of the snippet: the lines of the original that it may be, and how much each match is worth. None: a marker.
Weights = Mapping[int, float]
_Row = np.ndarray[tuple[int], np.dtype[np.float32]]


@dataclass(frozen=True, slots=True)
class Alignment:
    """The best alignment.

    Attributes:
        pairs: for each item its line of the original; None for new lines and markers.
        others: for each item, lines of the original that it could be just as well.
    """

    pairs: tuple[int | None, ...]
    others: Mapping[int, tuple[int, ...]]


def align(items: Sequence[Weights | None], count: int) -> Alignment:
    """Align items with `count` lines of the original; before the first and behind the last item is a marker."""
    rows, before = _forward(items, count)
    pairs = _trace(items, rows, before, count)
    reverse: list[Weights | None] = [
        None if item is None else {count - 1 - at: weight for at, weight in item.items()} for item in reversed(items)
    ]
    behind = _forward(reverse, count)[1][::-1]
    best = float(np.max(rows[-1]))
    others: dict[int, tuple[int, ...]] = {}
    for number, item in enumerate(items):
        forward, backward = before[number], behind[number]
        if item is None or forward is None or backward is None or pairs[number] is None:
            continue
        found = [
            at
            for at, weight in item.items()
            if at != pairs[number] and forward[at] + weight + backward[count - 1 - at] >= best - _CLOSE
        ]
        if found:
            others[number] = tuple(sorted(found))
    return Alignment(tuple(pairs), others)


def _forward(items: Sequence[Weights | None], count: int) -> tuple[list[_Row], list[_Row | None]]:
    """After each item, the best score by lines consumed; and before each line, the same with lines left out."""
    row: _Row = np.zeros(count + 1, np.float32)
    slope = np.arange(count + 1, dtype=np.float32) * _EACH
    rows: list[_Row] = [row]
    skipped: list[_Row | None] = []
    for item in items:
        if item is None:
            row = np.maximum.accumulate(row)
            skipped.append(None)
        else:
            reached = np.maximum(row, np.maximum.accumulate(row + slope) - slope - _OPEN)
            row = row.copy()
            if item:
                at = np.fromiter(item.keys(), np.int64, len(item))
                weight = np.fromiter(item.values(), np.float32, len(item))
                row[at + 1] = np.maximum(row[at + 1], reached[at] + weight)
            skipped.append(reached)
        rows.append(row)
    return rows, skipped


def _trace(
    items: Sequence[Weights | None], rows: list[_Row], skipped: list[_Row | None], count: int
) -> list[int | None]:
    pairs: list[int | None] = [None] * len(items)
    slope = np.arange(count + 1, dtype=np.float32) * _EACH
    at = int(np.argmax(rows[-1]))
    for number in range(len(items) - 1, -1, -1):
        item, row, reached = items[number], rows[number], skipped[number]
        if item is None or reached is None:
            at = int(np.flatnonzero(row[: at + 1] == rows[number + 1][at])[-1])
            continue
        if at > 0 and at - 1 in item and reached[at - 1] + np.float32(item[at - 1]) == rows[number + 1][at]:
            pairs[number] = at - 1
            at -= 1
            if reached[at] > row[at]:
                at = int(np.argmax((row + slope)[: at + 1]))
    return pairs
