"""From a rewritten region to the smallest edits that a person would name, and which of them to show first."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from calomel.suggest.planned import Planned, plan, slid
from calomel.suggest.suggestion import TextEdit

# Edits whose rows are this near to each other are shown together (Zed shows neighbours at most one row apart).
NEIGHBOUR_ROWS: Final = 1
# Further from the cursor than this, an edit is announced by a jump first.
JUMP_ROWS: Final = 2
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def split_lines(text: str) -> list[str]:
    r"""Lines with their ends; a line ends at \n, \r\n or \r and at nothing else, unlike `str.splitlines`."""
    if "\r" in text:
        return _LINE.findall(text)
    # In steps of the interpreter, unlike the search: others have their turn in a long text.
    *lines, last = text.split("\n")
    found = [line + "\n" for line in lines]
    return [*found, last] if last else found


def minimal_edits(text: str, start: int, end: int, rewritten: str) -> tuple[Planned, ...]:
    """The edits that turn `text[start:end]` into `rewritten`: lines first, then within lines.

    Lines of a changed block are paired when there are as many as before, so that two changed words on two lines are two
    edits and not one with everything between them.
    """
    old, new = split_lines(text[start:end]), split_lines(rewritten)
    starts = [start]
    for line in old:
        starts.append(starts[-1] + len(line))
    edits: list[TextEdit] = []
    for tag, old_from, old_to, new_from, new_to in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            continue
        if old_to - old_from == new_to - new_from:
            pairs = zip(range(old_from, old_to), range(new_from, new_to), strict=True)
            edits += [TextEdit(starts[line], starts[line + 1], new[other]) for line, other in pairs]
        else:
            edits.append(TextEdit(starts[old_from], starts[old_to], "".join(new[new_from:new_to])))
    return _joined(plan(text, edits))


def near_cursor(text: str, edits: Sequence[Planned], cursor: int) -> tuple[tuple[Planned, ...], tuple[Planned, ...]]:
    """The edit nearest to the cursor with its neighbours, and the others, each in order.

    Of two equally near ones, the one at or behind the cursor is first: people go on downwards.
    """
    if not edits:
        return (), ()
    row = row_of(text, cursor)
    rows = [rows_of(text, edit) for edit in edits]
    nearest = min(range(len(edits)), key=lambda at: (rows_between(rows[at], row), rows[at][1] < row, at))
    first = last = nearest
    while first > 0 and rows[first][0] - rows[first - 1][1] <= NEIGHBOUR_ROWS:
        first -= 1
    while last + 1 < len(edits) and rows[last + 1][0] - rows[last][1] <= NEIGHBOUR_ROWS:
        last += 1
    chosen = [slid(edit, text, cursor) for edit in edits[first : last + 1]]
    if any(left.end > right.start for left, right in pairwise(chosen)):
        chosen = list(edits[first : last + 1])
    return tuple(chosen), (*edits[:first], *edits[last + 1 :])


def row_of(text: str, offset: int) -> int:
    r"""Number of the line that `offset` is in, by \n and lone \r."""
    rows = text.count("\n", 0, offset)
    if text.find("\r", 0, offset) >= 0:
        rows += text.count("\r", 0, offset) - text.count("\r\n", 0, offset)
    return rows


def rows_of(text: str, edit: Planned) -> tuple[int, int]:
    """First and last line that an edit touches."""
    return row_of(text, edit.start), row_of(text, edit.end)


def rows_between(rows: tuple[int, int], row: int) -> int:
    """Lines between `row` and the nearer end of `rows`; 0 within them."""
    return max(rows[0] - row, row - rows[1], 0)


def _joined(edits: Sequence[Planned]) -> tuple[Planned, ...]:
    """Edits that touch each other as one."""
    joined: list[Planned] = []
    for edit in edits:
        if joined and joined[-1].end == edit.start:
            last = joined.pop()
            joined.append(Planned(last.start, edit.end, last.text + edit.text, last.removed + edit.removed))
        else:
            joined.append(edit)
    return tuple(joined)
