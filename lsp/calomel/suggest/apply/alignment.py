"""The best alignment of the lines of a snippet with those of the original.

Dynamic programming over both, row by row: a line of the snippet matches one of the original or is new; between two
matched lines of one run, lines of the original may be missing, which costs a little; a marker may stand for any number
of lines. Run from both ends, it also gives the best score with any given pair, and so which pairs have equally good
alternatives.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np
from rapidfuzz import fuzz

from calomel.suggest.apply.source import Source

# Letters and digits of a line that is worth a whole match.
_TELLING: Final = 12
# A line that introduces a definition tells more than any other.
_DEFINITION: Final = 0.6
_SAME_NAME: Final = 1.2
_CLOSER: Final = 0.6
_TRIVIAL: Final = 0.15
_BLANK: Final = 0.02
# A line that occurs in this many places tells nothing about any.
_COMMON: Final = 1000
# Lines with more characters are data; comparing them takes quadratic time.
_COMPARED: Final = 500
# Lines with this similarity, in percent, may be one line before and after a change.
_LIKE: Final = 65.0
_WORD: Final = re.compile(r"\w+")
_PIECE: Final = re.compile(r"\w+|\S")
# A line of fewer words is too easily found within another.
_WORDS: Final = 2


class Likeness:
    """Compares the lines of a snippet with those of the original.

    Attributes:
        weights: for each line of the snippet, the lines of the original that it may match, and the worth of each match.
    """

    def __init__(self, snippet: Source, original: Source) -> None:
        self._snippet = snippet
        self._original = original
        self._by_key: dict[str, list[int]] = defaultdict(list)
        self._by_name: dict[str, list[int]] = defaultdict(list)
        for at, key in enumerate(original.keys):
            self._by_key[key].append(at)
        for at, name in original.names.items():
            self._by_name[name].append(at)
        self._paths = [[original.identity(head) for head in original.path(at)] for at in range(len(original.lines))]
        self._heads = {original.identity(at) for at in range(len(original.lines)) if original.ends[at] > at + 1}
        self.weights = [self._compared(line) for line in range(len(snippet.lines))]

    def _compared(self, line: int) -> dict[int, float]:
        same = self._by_key.get(self._snippet.keys[line], [])
        if self._snippet.blank(line):
            return {} if line in self._snippet.left_out else dict.fromkeys(same, _BLANK)
        path = self._path(line)
        if path is None or len(same) > _COMMON:
            return {}
        found = dict.fromkeys(self.known(line), _SAME_NAME)
        for at in same:
            if _holds(self._paths[at], path) and self._same_block(line, at):
                found[at] = self._worth(line, at)
        return found

    def known(self, line: int) -> list[int]:
        """The definitions of the original that a line of the snippet redefines."""
        path = self._path(line)
        same = self._by_name.get(self._snippet.names.get(line, ""), [])
        return [] if path is None else [at for at in same if _holds(self._paths[at], path)]

    def alike(self, line: int, at: int) -> Literal["equal", "same", "like"] | None:
        """How two lines match: `same` if both assign or define the same thing, `like` if they look alike."""
        target = self._snippet.target(line)
        ours, theirs = self._snippet.keys[line], self._original.keys[at]
        if ours == theirs:
            return "equal"
        if self._snippet.defines(line) or self._original.defines(at):
            # With another name it is another definition, however similar.
            return "same" if self._snippet.names.get(line) == self._original.names.get(at) else None
        if target is not None and target == self._original.target(at):
            # An import that lacks a name of the other may be an additional one.
            more = not target.startswith("\0") or set(_WORD.findall(theirs)) <= set(_WORD.findall(ours))
            return "same" if more else "like"
        if max(len(ours), len(theirs)) > _COMPARED:
            return None
        if len(_WORD.findall(theirs)) >= _WORDS and _holds(_PIECE.findall(ours), _PIECE.findall(theirs)):
            # With something inserted.
            return "same"
        return "like" if fuzz.ratio(ours, theirs) >= _LIKE else None

    def _worth(self, line: int, at: int) -> float:
        if self._snippet.roots[line] != line and self._original.roots[at] != at:
            return _CLOSER
        letters = sum(map(str.isalnum, self._snippet.keys[line]))
        if letters < 3:  # noqa: PLR2004 (brackets and the like)
            return _TRIVIAL
        named = line in self._snippet.names and at in self._original.names
        return 0.2 + min(1.0, letters / _TELLING) + (_DEFINITION if named else 0.0)

    def _same_block(self, line: int, at: int) -> bool:
        """Whether two lines that close a block close the same one, as far as the snippet shows it."""
        root, theirs = self._snippet.roots[line], self._original.roots[at]
        if root == line or theirs == at:
            return root == line
        # The snippet may start in the middle of a block, with its second branch.
        return self._snippet.closes(root) or self._snippet.identity(root) == self._original.identity(theirs)

    def _path(self, line: int) -> list[str] | None:
        """The blocks around a line of the snippet that the original has, too; None within a new definition."""
        found = []
        for head in self._snippet.path(line):
            # Parsed on its own, a piece may seem a definition where the whole file has plain text.
            known = [each for each in (self._snippet.identity(head), self._snippet.keys[head]) if each in self._heads]
            if not known and self._snippet.defines(head):
                return None
            found += known[:1]
        return found


def _holds(whole: Sequence[str], part: Sequence[str]) -> bool:
    """Whether all of `part` is in `whole`, in this order."""
    left = iter(whole)
    return all(each in left for each in part)


# The cost of leaving out lines of the original, in matched lines: small, but it makes nearer matches better.
_OPEN: Final = np.float32(0.4)
_EACH: Final = np.float32(0.005)
# Scores that differ by no more than this are equally good.
_CLOSE: Final = 0.25

# For a line of the snippet: the lines of the original that it may match, and the worth of each match. None: a marker.
Weights = Mapping[int, float]
_Row = np.ndarray[tuple[int], np.dtype[np.float32]]


def align(items: Sequence[Weights | None], count: int) -> tuple[list[int | None], dict[int, list[int]]]:
    """Align items with `count` lines of the original, as if markers preceded the first and followed the last item.

    Returns:
        For each item its line of the original, None for new lines and markers; and by index of an item, the lines of
        the original that would match equally well.
    """
    rows, before = _forward(items, count)
    pairs = _trace(items, rows, before, count)
    reverse = [None if item is None else {count - 1 - at: weight for at, weight in item.items()} for item in items]
    behind = _forward(reverse[::-1], count)[1][::-1]
    least = float(np.max(rows[-1])) - _CLOSE
    others: dict[int, list[int]] = {}
    for number, (item, pair) in enumerate(zip(items, pairs, strict=True)):
        if item is not None and pair is not None:
            forward, backward = before[number], behind[number][::-1]
            close = (at for at in item if at != pair and forward[at] + item[at] + backward[at + 1] >= least)
            others[number] = sorted(close)
    return pairs, others


def _forward(items: Sequence[Weights | None], count: int) -> tuple[list[_Row], list[_Row]]:
    """After each item, the best score by number of lines consumed; and before each, the same with lines left out."""
    row: _Row = np.zeros(count + 1, np.float32)
    slope = np.arange(count + 1, dtype=np.float32) * _EACH
    rows, skipped = [row], []
    for item in items:
        if item is None:
            reached = row = np.maximum.accumulate(row)
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


def _trace(items: Sequence[Weights | None], rows: list[_Row], skipped: list[_Row], count: int) -> list[int | None]:
    pairs: list[int | None] = [None] * len(items)
    slope = np.arange(count + 1, dtype=np.float32) * _EACH
    at = int(np.argmax(rows[-1]))
    for number in range(len(items) - 1, -1, -1):
        item, row, reached = items[number], rows[number], skipped[number]
        if item is None:
            at = int(np.flatnonzero(row[: at + 1] == rows[number + 1][at])[-1])
        elif at > 0 and at - 1 in item and reached[at - 1] + np.float32(item[at - 1]) == rows[number + 1][at]:
            at -= 1
            pairs[number] = at
            if reached[at] > row[at]:
                at = int(np.argmax((row + slope)[: at + 1]))
    return pairs
