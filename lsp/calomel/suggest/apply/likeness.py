"""Which line of the original a line of the snippet may be, and how much that is worth."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final

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
