"""Where a run of the snippet goes some of whose lines are the original's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Final

from calomel.suggest.apply.alignment import Likeness
from calomel.suggest.apply.snippet import Run
from calomel.suggest.apply.source import Source, columns
from calomel.suggest.edit import line_end_of


@dataclass(frozen=True, slots=True)
class Piece:
    """One replacement.

    Attributes:
        start, end: lines of the original that go; none of them where both are the same.
        first, last: lines of the snippet that come, `last` excluded.
        shift: columns that they are indented further.
        apart_before, apart_after: empty lines wanted next to it where the original has none.
    """

    start: int
    end: int
    first: int
    last: int
    shift: int = 0
    apart_before: int = 0
    apart_after: int = 0


# The pieces that one run of the snippet comes to.
Reading = tuple[Piece, ...]


_TAB: Final = 4
_ENDS: Final = re.compile(r"[\r\n]+$")


def splice(original: Source, snippet: Source, pieces: Iterable[Piece]) -> str | None:
    """The merged text; None when two pieces want the same lines. Line ends are those of the original."""
    text = "".join(original.lines)
    end = line_end_of(text)
    tabs = any(line.startswith("\t") for line in original.lines)
    merged: list[str] = []
    at = 0
    for piece in sorted(pieces, key=lambda piece: (piece.start, piece.first)):
        if piece.start < at:
            return None
        merged += original.lines[at : piece.start]
        _keep_apart(merged, piece.apart_before, end)
        if merged and not merged[-1].endswith(("\n", "\r")):
            merged[-1] += end
        for line in range(piece.first, piece.last):
            bare = _ENDS.sub("", snippet.lines[line])
            merged.append((_shifted(bare, piece.shift, tabs=tabs) if bare.strip() else bare) + end)
        at = piece.end
        if piece.apart_after and at < len(original.lines) and not original.blank(at):
            merged += [end] * piece.apart_after
    merged += original.lines[at:]
    result = "".join(merged)
    if text and not text.endswith(("\n", "\r")):
        return result.removesuffix(end)
    return result


def _keep_apart(merged: list[str], wanted: int, end: str) -> None:
    if not wanted or not any(line.strip() for line in merged):
        return
    if not merged[-1].endswith(("\n", "\r")):
        merged[-1] += end
    blank = 0
    while blank < len(merged) and not merged[-1 - blank].strip():
        blank += 1
    merged += [end] * (wanted - blank)


def _shifted(line: str, shift: int, *, tabs: bool) -> str:
    if not shift:
        return line
    body = line.lstrip(" \t")
    width = max(0, columns(line) + shift)
    if tabs:
        return "\t" * (width // _TAB) + " " * (width % _TAB) + body
    return " " * width + body


Pairs = Sequence[int | None]

# A block of at most so many lines may become anything; of a longer one, a share of its lines should be left.
_SHORT_BLOCK: Final = 8
_LEAST_SHARE: Final = 0.34
# More lines than this are not dropped between two lines of a snippet without asking.
_DROPPED: Final = 12
# A block that stops so many lines short of its end may be meant to end there.
_LEFT: Final = 3
# Readings of one run at most.
_READINGS: Final = 8
_LEAST_ALIKE: Final = 2


class Anchored:
    """Reads runs with lines of the original.

    Args:
        snippet: what should become of a file.
        original: the file.
        likeness: of both.
        pairs: for each line of the snippet, the original's line that it is.
    """

    def __init__(self, snippet: Source, original: Source, likeness: Likeness, pairs: Pairs) -> None:
        self._snippet = snippet
        self._original = original
        self._likeness = likeness
        self._pairs = pairs

    def matches(self, run: Run) -> list[tuple[int, int]]:
        """The lines of a run that are the original's, with those."""
        filled = self._snippet.filled(run.start, run.end)
        return [(line, at) for line in filled if (at := self._pairs[line]) is not None]

    def readings(self, run: Run, low: int, high: int) -> list[Reading]:
        """What a run may mean, likeliest first; it lies between the lines `low` and `high` of the original."""
        matches = self.matches(run)
        starts = self._starts(run, matches[0], low)
        ends = self._ends(run, matches[-1], high)
        splits = [(False, True) if self._doubtful(one, other) else (False,) for one, other in pairwise(matches)]
        shift = self._shift(matches)
        found = []
        for start, end, *keeps in product(starts, ends, *splits):
            cuts = [pair for pair, keep in zip(pairwise(matches), keeps, strict=True) if keep]
            found.append(_reading(run, start, end, cuts, shift))
            if len(found) == _READINGS:
                break
        return found

    def _starts(self, run: Run, first: tuple[int, int], low: int) -> list[int]:
        """From which line of the original on it is replaced."""
        line, at = first
        new = self._snippet.filled(run.start, line)
        if not new:
            return [at]
        indent = min(self._snippet.indents[each] for each in new) + self._original.indents[at]
        indent -= self._snippet.indents[line]
        above = [each for each in range(at - 1, low - 1, -1) if not self._original.blank(each)]
        return self._replaced(new, above, at, 0, indent)

    def _ends(self, run: Run, last: tuple[int, int], high: int) -> list[int]:
        """Up to which line of the original it is replaced."""
        line, at = last
        new = self._snippet.filled(line + 1, run.end)
        block = self._completed(run)
        if block is not None:
            head, end = block
            end = max(end, at + 1)
            if end == at + 1 or (new and self._plausible(head, end, run)):
                return [end]
            if new:
                return [end, at + 1]
            # Nothing of it is new at its end: most likely the snippet stops where it has said what it says.
            return [at + 1] if self._goes_on(head, at, end, run) else [end, at + 1]
        if not new:
            return [at + 1]
        indent = min(self._snippet.indents[each] for each in new) + self._original.indents[at]
        indent -= self._snippet.indents[line]
        below = [each for each in range(at + 1, high) if not self._original.blank(each)]
        found = self._replaced(new, below, at + 1, 1, indent)
        if (
            self._snippet.left_out
            and not run.marked_after
            and self._original.filled(found[0], len(self._original.lines))
        ):
            # Where other places have a marker and the end has none, the file may end with what is new.
            return [*found, len(self._original.lines)]
        return found

    def _replaced(self, new: list[int], near: list[int], edge: int, behind: int, indent: int) -> list[int]:
        """New lines at the edge of a run replace the lines next to it that are alike, or are put next to them."""
        found, certain = edge, True
        for at in near[: len(new)]:
            if self._original.indents[at] < indent:
                break
            kind = self._alike(new, at)
            if kind is None:
                break
            certain = certain and kind in {"equal", "same"}
            found = at + behind
        if found == edge:
            return [edge]
        return [found] if certain else [found, edge]

    def _alike(self, new: list[int], at: int) -> str | None:
        kinds = {self._likeness.alike(line, at) for line in new}
        if "equal" in kinds:
            return "equal"
        if "same" in kinds and (self._original.target(at) is None or self._only_one(at)):
            return "same"
        return "like" if kinds & {"same", "like"} else None

    def _only_one(self, at: int) -> bool:
        """Whether nothing else in its block gives a value to the same thing."""
        target, parent = self._original.target(at), self._original.parents[at]
        head = max(parent, 0)
        end = self._original.ends[self._original.roots[parent]] if parent >= 0 else len(self._original.lines)
        same = [line for line in range(head, end) if self._original.target(line) == target]
        return same == [at]

    def _completed(self, run: Run) -> tuple[int, int] | None:
        """The outermost block that is shown to its end by this run: the snippet's line, and the original's end."""
        last = run.end - 1
        for head in [*self._snippet.path(last), self._snippet.roots[last]]:
            at = self._pairs[head]
            if at is None or self._snippet.indents[head] < run.outside or self._snippet.ends[head] == head + 1:
                continue
            at = self._original.roots[at]
            if self._holds_definitions(at):
                continue
            return head, self._original.ends[at]
        return None

    def _holds_definitions(self, at: int) -> bool:
        ends = self._original.ends
        return any(line in self._original.names and ends[line] > line + 1 for line in range(at + 1, ends[at]))

    def _plausible(self, head: int, end: int, run: Run) -> bool:
        """Whether what a block becomes is no mere beginning of what it was."""
        at = self._pairs[head]
        size = 0 if at is None else len(self._original.filled(self._original.roots[at], end))
        shown = len(self._snippet.filled(head, run.end))
        inside = any(line in self._snippet.left_out for line in range(head, run.end))
        return size <= _SHORT_BLOCK or inside or shown >= _LEAST_SHARE * size

    def _goes_on(self, head: int, at: int, end: int, run: Run) -> bool:
        """Whether what the snippet does not show of a block is too much to be meant as removed."""
        left = len(self._original.filled(at + 1, end))
        shown = self._snippet.filled(max(head, run.start), run.end)
        if head < run.start or left >= len(shown):
            return True
        if not run.marked_after:
            return False
        same = all(self._pairs[line] is not None for line in shown)
        return left > _LEFT or (same and len(shown) <= _LEFT)

    def _doubtful(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether what is missing between two lines of a run may have been left out by mistake."""
        dropped = self._original.filled(one[1] + 1, other[1])
        if len(dropped) < _LEAST_ALIKE:
            return False
        names = set(self._snippet.names.values())
        ends = self._original.ends
        lost = [
            at
            for at in dropped
            if ends[at] > at + 1 and at in self._original.names and self._original.names[at] not in names
        ]
        new = self._snippet.filled(one[0] + 1, other[0])
        closing = self._snippet.closes(other[0])
        if len(lost) >= _LEAST_ALIKE or (lost and closing):
            return True
        return len(dropped) > _DROPPED and len(dropped) > 3 * len(new) and not lost and not closing

    def _shift(self, matches: list[tuple[int, int]]) -> int:
        """How much further the original indents the lines of a run, where all of them agree."""
        found = {self._original.indents[at] - self._snippet.indents[line] for line, at in matches}
        return found.pop() if len(found) == 1 else 0


def _reading(
    run: Run, start: int, end: int, cuts: list[tuple[tuple[int, int], tuple[int, int]]], shift: int
) -> Reading:
    """The pieces of a run; a cut keeps what the original has between two lines."""
    pieces = []
    first = run.start
    for (_, at), (line, other) in cuts:
        pieces.append(Piece(start, at + 1, first, line, shift))
        start, first = other, line
    pieces.append(Piece(start, end, first, run.end, shift))
    return tuple(pieces)
