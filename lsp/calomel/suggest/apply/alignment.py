"""Which lines of a snippet are which lines of the original, best in all.

A dynamic programme over both, row by row: a line of the snippet is one of the original's, or it is new; between two
lines of one run that are the original's, lines of the original may be missing, which costs a little; a marker may stand
for any number of lines. Run from both ends, it also says how good the best alignment with any one pair would be, and so
which pairs could as well be others.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from rapidfuzz import fuzz

from calomel.suggest.apply.source import Source

# So many letters and digits make a line that is worth a whole match.
_TELLING: Final = 12
# What introduces a definition says more than any other line.
_DEFINITION: Final = 0.6
_SAME_NAME: Final = 1.2
_CLOSER: Final = 0.6
_TRIVIAL: Final = 0.15
_BLANK: Final = 0.02
# A line that stands in so many places says nothing about any.
_COMMON: Final = 1000
# Longer lines, in characters, are data; comparing them takes the square of their length.
_COMPARED: Final = 500
# Lines that are so alike, in percent, may be one line before and after a change.
LIKE: Final = 65.0
_WORD: Final = re.compile(r"\w+")
_PIECE: Final = re.compile(r"\w+|\S")
# A line of fewer words is soon found within another.
_WORDS: Final = 2


class Likeness:
    """Compares the lines of a snippet with those of the original."""

    def __init__(self, snippet: Source, original: Source) -> None:
        self._snippet = snippet
        self._original = original
        self._by_key: dict[str, list[int]] = defaultdict(list)
        self._by_name: dict[str, list[int]] = defaultdict(list)
        for at, key in enumerate(original.keys):
            self._by_key[key].append(at)
        for at, name in original.names.items():
            self._by_name[name].append(at)
        self._heads = {original.identity(at) for at in range(len(original.lines)) if original.ends[at] > at + 1}
        self._paths: dict[int, tuple[str, ...]] = {}
        self._weights: dict[int, dict[int, float]] = {}

    def weights(self, line: int) -> dict[int, float]:
        """The lines of the original that a line of the snippet may be."""
        found = self._weights.get(line)
        if found is None:
            found = self._weights[line] = self._compared(line)
        return found

    def _compared(self, line: int) -> dict[int, float]:
        snippet = self._snippet
        key = snippet.keys[line]
        if not key:
            return dict.fromkeys(self._by_key.get("", ()), _BLANK)
        if len(self._by_key.get(key, ())) > _COMMON:
            return {}
        path = self._path(line)
        if path is None:
            return {}
        found: dict[int, float] = {}
        for at in self._by_key.get(key, ()):
            if within(path, self._original_path(at)) and self._same_block(line, at):
                found[at] = self._worth(line, at)
        name = snippet.names.get(line)
        for at in () if name is None else self._by_name.get(name, ()):
            if at not in found and within(path, self._original_path(at)):
                found[at] = _SAME_NAME
        return found

    def known(self, line: int) -> list[int]:
        """The definitions of the original that a line of the snippet defines anew."""
        name, path = self._snippet.names.get(line), self._path(line)
        if name is None or path is None:
            return []
        return [at for at in self._by_name.get(name, ()) if within(path, self._original_path(at))]

    def alike(self, line: int, at: int) -> str | None:
        """`equal`; `same` where both give a value to the same thing, `like` where they look alike."""
        target = self._snippet.target(line)
        ours, theirs = self._snippet.keys[line], self._original.keys[at]
        if ours == theirs:
            return "equal"
        if self._defines(self._snippet, line) or self._defines(self._original, at):
            # Another name is another definition, however alike.
            return "same" if self._snippet.names.get(line) == self._original.names.get(at) else None
        if target is not None and target == self._original.target(at):
            # An import that lacks a name of the other may be meant beside it.
            more = not target.startswith("\0") or set(_WORD.findall(theirs)) <= set(_WORD.findall(ours))
            return "same" if more else "like"
        if max(len(ours), len(theirs)) > _COMPARED:
            return None
        if len(_WORD.findall(theirs)) >= _WORDS and _goes_on(ours, theirs):
            return "same"
        return "like" if fuzz.ratio(ours, theirs) >= LIKE else None

    @staticmethod
    def _defines(source: Source, line: int) -> bool:
        return line in source.names and source.ends[line] > line + 1

    def _worth(self, line: int, at: int) -> float:
        key = self._snippet.keys[line]
        if self._snippet.roots[line] != line and self._original.roots[at] != at:
            return _CLOSER
        letters = sum(map(str.isalnum, key))
        if letters < 3:  # noqa: PLR2004 (brackets and the like)
            return _TRIVIAL
        worth = 0.2 + min(1.0, letters / _TELLING)
        named = line in self._snippet.names and at in self._original.names
        return worth + _DEFINITION if named else worth

    def _same_block(self, line: int, at: int) -> bool:
        """Whether two lines that close a block close the same one, as far as the snippet shows it."""
        root = self._snippet.roots[line]
        if root == line:
            return True
        theirs = self._original.roots[at]
        if theirs == at:
            return False
        # The snippet may begin in the middle of a block, with its second arm.
        return self._snippet.closes(root) or self._snippet.identity(root) == self._original.identity(theirs)

    def _path(self, line: int) -> list[str] | None:
        """What the snippet shows around a line, where the original has it; None within a new definition."""
        found = []
        snippet = self._snippet
        for head in snippet.path(line):
            identity = snippet.identity(head)
            if identity in self._heads:
                found.append(identity)
            elif snippet.keys[head] in self._heads:
                # A parser that sees a piece alone takes for a definition what is text in the whole.
                found.append(snippet.keys[head])
            elif self._defines(snippet, head):
                return None
        return found

    def _original_path(self, at: int) -> tuple[str, ...]:
        parent = self._original.parents[self._original.roots[at]]
        if parent not in self._paths:
            path = self._original.path(at)
            self._paths[parent] = tuple(self._original.identity(head) for head in path)
        return self._paths[parent]


def _goes_on(ours: str, theirs: str) -> bool:
    """Whether one line is the other with something put in."""
    left = iter(_PIECE.findall(ours))
    return all(piece in left for piece in _PIECE.findall(theirs))


def within(path: list[str], whole: tuple[str, ...]) -> bool:
    """Whether all of `path` is in `whole`, in this order."""
    left = iter(whole)
    return all(part in left for part in path)


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
