"""Drafts that repeat whole lines that were added, removed or replaced, at the same lines elsewhere."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from calomel.code.lines import Rows, indent_of, split_lines
from calomel.code.scopes import is_function
from calomel.code.tokens import is_comment, is_distinctive, is_import
from calomel.prompts.parts import common_prefix
from calomel.suggest.drafts.evidence import EditDraft, Evidence

MAKER: Final = "whole_lines"
# Least common prefix of the neighbours, in characters.
_SHORTEST: Final = 8
# More new lines are a separate block.
_MOST: Final = 8
_PLACES: Final = 24
# Lines above a place in which its list may start.
_LIST: Final = 24
_SAME, _ONE_NEIGHBOUR = 0.9, 0.6


def whole_lines(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts that repeat changes of whole lines.

    A line that was added next to several lines with the same start is added next to the others (rust-url: a lint above
    each setter; gorilla: `t.Parallel()` at the start of each test). A change of some lines is repeated on equal lines
    elsewhere (structlog: `"exc_notes": [],` above each `"frames": [`; commander: an argument after each `.option(…)`).
    """
    yield from _beside(rows, seen)
    found = Counter(_block(rows, hunk.before, hunk.after, hunk.start_line) for hunk in seen.own)
    edited = seen.rows()
    for each, support in found.items():
        if each is not None:
            yield from each.places(rows, edited, support)


def _beside(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    came: defaultdict[str, list[int]] = defaultdict(list)
    for each in seen.insertions:
        (line, *more) = each.lines
        if each.row is not None and not more and is_distinctive(line) and not is_import(line):
            came[line.strip()].append(each.row)
    edited = seen.rows()
    for new, places in came.items():
        for behind in (False, True):
            neighbours = [place - 1 if behind else place + 1 for place in places]
            alike = _alike([rows.lines[at] for at in neighbours if 0 <= at < len(rows)])
            if alike is None or len(places) < 2:  # noqa: PLR2004
                continue
            for row, line in enumerate(rows.lines):
                if row in neighbours or row in edited or not line.strip().startswith(alike):
                    continue
                at = min(row + behind, len(rows) - 1)
                if new not in rows.lines[at] and new not in rows.lines[max(0, at - 1)]:
                    text = f"{indent_of(rows.lines[at])}{new}{rows.line_end}"
                    yield EditDraft(rows.start(at), rows.start(at), text, MAKER, len(places), 0.8)


def _alike(neighbours: Sequence[str]) -> str | None:
    """The common prefix of all; None if it is not distinctive."""
    first, *others = [line.strip() for line in neighbours] or [""]
    text = first[: min((common_prefix(first, each) for each in others), default=len(first))]
    return text if len(text) >= _SHORTEST and is_distinctive(text) and not is_comment(text) else None


@dataclass(frozen=True, slots=True)
class _Block:
    """A change of lines: `old` became `new`, between two others, all without the indentation of the first one."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    above: str
    below: str

    def places(self, rows: Rows, edited: frozenset[int | None], support: int) -> Iterator[EditDraft]:
        """Drafts for the same lines elsewhere."""
        places = (row for row in range(len(rows)) if edited.isdisjoint(range(row, row + len(self.old))))
        found = ((row, likeness) for row in places if (likeness := self._likeness(rows, row, support)))
        for row, likeness in islice(found, _PLACES):
            line = rows.lines[row]
            indent = indent_of(line if self.old or self._is(line, self.below) else rows.lines[row - 1])
            text = "".join(f"{indent if each else ''}{each}{rows.line_end}" for each in self.new)
            end = rows.start(row + len(self.old))
            if self.old and self.new:
                text, end = text.removesuffix(rows.line_end), rows.end(row + len(self.old) - 1)
            yield EditDraft(rows.start(row), end, text, MAKER, support, likeness)

    def _likeness(self, rows: Rows, row: int, support: int) -> float:
        """The similarity of a place to the edited one; 0 if it does not match or the change is done there."""
        if self.old:
            # Quick check first, since a question looks at all lines of a file.
            if rows.lines[row].strip() != self.old[0].strip() or not (self.new or support > 1):
                return 0.0
            return _SAME if tuple(_dedented(rows.lines[row : row + len(self.old)])) == self.old else 0.0
        above = row > 0 and self._is(rows.lines[row - 1], self.above)
        below = self._is(rows.lines[row], self.below)
        around = rows.lines[max(0, row - len(self.new)) : row + len(self.new)]
        if not (above or below) or any(line.strip() == self.new[0] for line in around):
            return 0.0
        if above and below:
            return _SAME
        return _ONE_NEIGHBOUR if support > 1 or len(self.new) == 1 else 0.0

    def _is(self, line: str, neighbour: str) -> bool:
        return line.strip() == neighbour and is_distinctive(neighbour)


def _block(rows: Rows, before: str, after: str, near: int) -> _Block | None:
    """The change of whole lines by an edit; None if it is not distinctive, or not there any more."""
    one, other = ([line.rstrip("\r\n") for line in split_lines(text)] for text in (before, after))
    at = rows.find(other, near) if other else min(near, len(rows) - 1)
    if at is None or max(len(one), len(other)) > 3 * _MOST:
        return None
    first = _alike_from_the_start(one, other)
    last = _alike_from_the_start(one[first:][::-1], other[first:][::-1])
    old, new = one[first : len(one) - last], other[first : len(other) - last]
    at += first
    told = [line for line in (*old, *new) if line.strip()]
    if not told or len(new) > _MOST or any(is_import(line) or is_comment(line) or is_function(line) for line in told):
        return None
    # Changes of a part of a line, or of a list of parameters or arguments, have their own rules.
    opened = None if old else rows.opening(rows.start(at), rows.start(max(0, at - _LIST)))
    if not any(map(is_distinctive, old or new)) or len(old) == len(new) == 1 or (opened and rows.text[opened] == "("):
        return None
    above = rows.lines[at - 1].strip() if at and not old else ""
    below = rows.lines[at + len(new)].strip() if not old and at + len(new) < len(rows) else ""
    indent = len(indent_of(next(line for line in (*old, *new) if line.strip())))
    return _Block(tuple(_dedented(old)), tuple(line[indent:] for line in new), above, below)


def _alike_from_the_start(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of common first lines."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _dedented(lines: Sequence[str]) -> Iterator[str]:
    indent = len(indent_of(lines[0])) if lines else 0
    return (line[indent:] if line[:indent].isspace() or not indent else line.strip() for line in lines)
