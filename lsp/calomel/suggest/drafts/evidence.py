"""Evidence from the last edits: which lines changed how, and which are new; and the drafts made from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from rapidfuzz import fuzz

from calomel.code.lines import Rows, split_lines
from calomel.code.names import LONGEST_LINE
from calomel.code.tokens import is_comment, is_import
from calomel.prompts.parts import Hunk


@dataclass(frozen=True, slots=True)
class EditDraft:
    """Replace `start:end`, offsets in the document's text, with `text`.

    Attributes:
        start: of the replaced text.
        end: of the replaced text.
        text: the replacement.
        maker: which rule made it.
        support: how many of the last edits agree with the rule; 1 for just the edit from which it was derived.
        likeness: similarity of the place to that of the original edit, 0 to 1.
        alone: it is a separate change, not to be offered together with others.
    """

    start: int
    end: int
    text: str
    maker: str
    support: int = 1
    likeness: float = 1.0
    alone: bool = False

    def apply(self, text: str) -> str:
        """The text with the draft applied."""
        return text[: self.start] + self.text + text[self.end :]

    def changed(self, rows: Rows) -> tuple[int, str, str]:
        """The start of the lines that it changes, their text and their new text, without the last line end."""
        start, end = rows.start(rows.row(self.start)), rows.end(rows.row(self.end))
        return start, rows.text[start:end], rows.text[start : self.start] + self.text + rows.text[self.end : end]


# Edits from which rules are derived; older ones belonged to something else.
_HUNKS: Final = 8
# Less similar lines are a deleted and a new one.
_ALIKE: Final = 40.0
_HEAD: Final = re.compile(r"\w[\w ]* \w+\(")
# Longer replacements are not edits line by line.
_LONGEST: Final = 24


@dataclass(frozen=True, slots=True)
class LineEdit:
    """One line became another.

    Attributes:
        old, new: without line ends.
        row: line of `new`; None in another file, or if it is gone.
        age: 0 for the newest edit.
        copied: the lines of a copy in which it changed one; None if it changed no copy.
        is_foreign: whether it is in another file.
    """

    old: str
    new: str
    row: int | None
    age: int
    copied: range | None = None
    is_foreign: bool = False


@dataclass(frozen=True, slots=True)
class Insertion:
    """New lines, without line ends; `row` is that of the first one, None as in `LineEdit`."""

    lines: tuple[str, ...]
    row: int | None
    age: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """The last edits, newest first.

    Attributes:
        edits: changed lines; what changes a copy of lines says nothing about the lines that it is a copy of.
        copies: changed lines of copies.
        insertions: new lines.
        deleted: lines that were deleted.
        touched: rows of this document's edits.
        own: these edits.
        older: changed lines before that, which only tell how far the last edits' renames have come.
    """

    edits: tuple[LineEdit, ...]
    insertions: tuple[Insertion, ...]
    deleted: tuple[str, ...]
    touched: tuple[int, ...] = ()
    own: tuple[Hunk, ...] = ()
    copies: tuple[LineEdit, ...] = ()
    older: tuple[LineEdit, ...] = ()

    def earlier(self, rows: Rows) -> Iterator[Rows]:
        """The document before the last edit, before the last two, and so on, as far as known."""
        for hunk in self.own:
            after = [line.rstrip("\r\n") for line in split_lines(hunk.after)]
            at = rows.find(after, hunk.start_line) if after else hunk.start_line
            if at is not None and at < len(rows):
                text = rows.text[: rows.start(at)] + hunk.before + rows.text[rows.start(at + len(after)) :]
                rows = Rows(text, rows.names)
                yield rows

    def rows(self) -> frozenset[int | None]:
        """The changed and new lines; None stands for those that have no row here."""
        new = (range(each.row, each.row + len(each.lines)) for each in self.insertions if each.row is not None)
        return frozenset((*(edit.row for edit in (*self.edits, *self.copies)), *(row for rows in new for row in rows)))

    def telling(self) -> tuple[LineEdit, ...]:
        """The changed lines of code; comments and imports only if several of them changed."""
        aside = [edit for edit in self.edits if is_comment(edit.new) or is_import(edit.new)]
        return self.edits if len(aside) > 1 else tuple(edit for edit in self.edits if edit not in aside)


def evidence(rows: Rows, hunks: Sequence[Hunk], path: str | None = None) -> Evidence:
    """Derive the evidence from the last edits.

    Args:
        rows: of the current document.
        hunks: the last edits, newest last.
        path: of the document; edits of others have no row here. None when all are its own.
    """
    edits: list[LineEdit] = []
    insertions: list[Insertion] = []
    deleted: list[str] = []
    touched: list[int] = []
    mine: list[Hunk] = []
    older: list[LineEdit] = []
    for age, hunk in enumerate(reversed(hunks)):
        before, after = ([line.rstrip("\r\n") for line in split_lines(text)] for text in (hunk.before, hunk.after))
        if max(len(before), len(after)) > _LONGEST or max(map(len, (*before, *after)), default=0) > LONGEST_LINE:
            continue
        own = path is None or hunk.path == path
        at = rows.find(after, hunk.start_line) if own else None
        if age >= _HUNKS:
            older += _replaced(before, after, at, age) if own and at is not None else ()
            continue
        if own:
            touched.append(hunk.start_line if at is None else at)
            mine.append(hunk)
        for low, high in _paired(before, after):
            row = None if at is None or high is None else at + high
            if low is not None and high is not None:
                if before[low] != after[high]:
                    _add(edits, LineEdit(before[low], after[high], row, age, is_foreign=not own))
            elif high is not None and after[high].strip():
                _grow(insertions, Insertion((after[high],), row, age))
            elif low is not None and before[low].strip():
                deleted.append(before[low])
    changed = [edit for edit in edits if edit.old.split() != edit.new.split()]
    copies = [replace(edit, copied=_copy(rows, edit, insertions)) for edit in changed]
    return Evidence(
        tuple(edit for edit in copies if edit.copied is None),
        tuple(insertions),
        tuple(deleted),
        tuple(touched),
        tuple(mine),
        tuple(edit for edit in copies if edit.copied is not None),
        tuple(older),
    )


def _replaced(before: Sequence[str], after: Sequence[str], at: int, age: int) -> Iterator[LineEdit]:
    """The changed lines of an edit that neither added nor deleted lines."""
    if len(before) == len(after):
        for row, (old, new) in enumerate(zip(before, after, strict=True), at):
            if old != new:
                yield LineEdit(old, new, row, age)


def _copy(rows: Rows, edit: LineEdit, insertions: Sequence[Insertion]) -> range | None:
    """The lines that were inserted with a line before it was changed, if the like of it still stands elsewhere."""
    if edit.row is None or edit.old not in rows.lines:
        return None
    for each in insertions:
        if each.age > edit.age and edit.old in each.lines:
            first = edit.row - each.lines.index(edit.old)
            return range(max(0, first), first + len(each.lines))
    return None


def _add(edits: list[LineEdit], edit: LineEdit) -> None:
    """Add an older edit; if a newer one continued it, merge them."""
    at = next((at for at, newer in enumerate(edits) if newer.old == edit.new), None)
    if at is None:
        edits.append(edit)
    else:
        edits[at] = replace(edits[at], old=edit.old)


def _grow(insertions: list[Insertion], new: Insertion) -> None:
    last = insertions[-1] if insertions else None
    if last is not None and last.age == new.age and last.row is not None and new.row == last.row + len(last.lines):
        insertions[-1] = replace(last, lines=(*last.lines, *new.lines))
    else:
        insertions.append(new)


_Pairs = tuple[tuple[int | None, int | None], ...]


def _paired(before: list[str], after: list[str]) -> _Pairs:
    """The best pairing of old and new lines, in order; None for those without a counterpart."""
    rows, columns = len(before), len(after)

    @cache
    def best(row: int, column: int) -> tuple[float, _Pairs]:
        if row == rows or column == columns:
            return 0.0, (*((at, None) for at in range(row, rows)), *((None, at) for at in range(column, columns)))
        old, new = before[row].strip(), after[column].strip()
        worth = fuzz.ratio(old, new) if old else 0.0
        # Same start up to the parameter list: the same function, however long the list.
        if _HEAD.match(old) and old.partition("(")[0] == new.partition("(")[0]:
            worth = max(worth, _ALIKE)
        choices: list[tuple[float, tuple[int | None, int | None], tuple[float, _Pairs]]] = []
        # If the number of lines is the same, less similarity is enough at the same position.
        if worth >= (_ALIKE / 2 if rows == columns and row == column else _ALIKE):
            choices.append((worth, (row, column), best(row + 1, column + 1)))
        choices += [(0.0, (row, None), best(row + 1, column)), (0.0, (None, column), best(row, column + 1))]
        own, pair, (rest, pairs) = max(choices, key=lambda choice: choice[0] + choice[2][0])
        return own + rest, (pair, *pairs)

    return best(0, 0)[1]
