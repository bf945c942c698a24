"""Edits of a text that remember what they replace, and their algebra: trim, join, slide, and rebase over a change."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from calomel.code.lines import split_lines
from calomel.prompts import parts
from calomel.workspace.documents import TextChange


class Planned(NamedTuple):
    """Replace `removed`, the text at `start:end`, with `text`."""

    start: int
    end: int
    text: str
    removed: str

    def shifted(self, by: int) -> Planned:
        """The same edit, `by` characters further on."""
        return Planned(self.start + by, self.end + by, self.text, self.removed)

    def fits(self, text: str) -> bool:
        """Whether `text` still has at `start:end` what this edit replaces."""
        return 0 <= self.start <= len(text) and text[self.start : self.end] == self.removed


TextEdit = parts.Edit
apply = parts.edited


def edits_of(planned: Sequence[Planned]) -> tuple[TextEdit, ...]:
    """The edits without what they replace."""
    return tuple(TextEdit(*edit[:3]) for edit in planned)


def plan(text: str, edits: Iterable[TextEdit]) -> tuple[Planned, ...]:
    """`edits` of `text`, sorted and trimmed to what they really change; those that change nothing are dropped."""
    planned = (trimmed(Planned(edit.start, edit.end, edit.text, text[edit.start : edit.end])) for edit in sorted(edits))
    return tuple(edit for edit in planned if edit.text or edit.removed)


def trimmed(edit: Planned) -> Planned:
    """The same edit without the common prefix, then the common suffix, of its old and new text."""
    start, end, text, removed = edit
    if not text or not removed:
        return edit
    front = common_prefix(removed, text)
    text, removed, start = text[front:], removed[front:], start + front
    back = common_suffix(removed, text)
    if back:
        text, removed, end = text[:-back], removed[:-back], end - back
    return Planned(start, end, text, removed)


def minimal_edits(text: str, start: int, end: int, rewritten: str) -> tuple[Planned, ...]:
    """The edits that turn `text[start:end]` into `rewritten`: lines first, then within lines.

    Lines of a changed block are paired if there are as many as before, so that two changed words on two lines are two
    edits and not one with everything between them.
    """
    old, new = split_lines(text[start:end]), split_lines(rewritten)
    starts = [start]
    for line in old:
        starts.append(starts[-1] + len(line))
    edits: list[TextEdit] = []
    for old_from, old_to, new_from, new_to in parts.differences(old, new):
        if old_to - old_from == new_to - new_from:
            pairs = zip(range(old_from, old_to), range(new_from, new_to), strict=True)
            edits += [TextEdit(starts[line], starts[line + 1], new[other]) for line, other in pairs]
        else:
            edits.append(TextEdit(starts[old_from], starts[old_to], "".join(new[new_from:new_to])))
    return _joined(plan(text, edits))


def joined(text: str, edits: Sequence[tuple[int, int, str]]) -> TextEdit:
    """One edit that covers `edits` of `text` (sorted, at least one) and the unchanged text between them."""
    start, end = edits[0][0], edits[-1][1]
    inside = [TextEdit(low - start, high - start, new) for low, high, new in edits]
    return TextEdit(start, end, apply(text[start:end], inside))


def _joined(edits: Sequence[Planned]) -> tuple[Planned, ...]:
    """Merge adjacent edits."""
    joined: list[Planned] = []
    for edit in edits:
        if joined and joined[-1].end == edit.start:
            last = joined.pop()
            joined.append(Planned(last.start, edit.end, last.text + edit.text, last.removed + edit.removed))
        else:
            joined.append(edit)
    return tuple(joined)


def slid(edit: Planned, text: str, cursor: int) -> Planned:
    r"""The same insertion moved to start at `cursor`, if the result is the same; else the edit unchanged.

    Inserting "b\n" before a line end is the same as "\nb" after it; shown at the cursor it reads better.
    """
    distance = edit.start - cursor
    if edit.removed or not edit.text or distance == 0:
        return edit
    if 0 < distance <= len(edit.text) and text[cursor : edit.start] == edit.text[len(edit.text) - distance :]:
        moved = text[cursor : edit.start] + edit.text[: len(edit.text) - distance]
        return Planned(cursor, cursor, moved, "")
    ahead = -distance
    if 0 < ahead <= len(edit.text) and text[edit.start : cursor] == edit.text[:ahead]:
        return Planned(cursor, cursor, edit.text[ahead:] + edit.text[:ahead], "")
    return edit


# Short typed text also agrees if the suggestion has it a little further on: "name" typed into "self.name".
# Both numbers are from the rebase of next edits in the Copilot chat extension.
MAX_AGREEMENT_OFFSET: Final = 10
MAX_IMPERFECT_LENGTH: Final = 5


def rebase(
    edits: Sequence[Planned], change: TextChange, *, kind: Literal["fill", "edit"] = "fill"
) -> tuple[Planned, ...] | None:
    """`edits` rebased over `change`; empty when the change did all of them, None when it disagrees.

    Args:
        edits: sorted, not adjacent, of the text before the change.
        change: one change of that text.
        kind: short typed text may match a little inside an insertion of an `edit`; that of a `fill` must match from
            the start.
    """
    # Some editors send a whole line when one word of it is new.
    done = trimmed(Planned(change.start, change.end, change.inserted, change.removed))
    if not done.text and not done.removed:
        return tuple(edits)
    shift = len(done.text) - len(done.removed)
    touched = [edit for edit in edits if edit.start <= done.end and edit.end >= done.start]
    before = [edit for edit in edits if edit.end < done.start]
    after = [edit.shifted(shift) for edit in edits if edit.start > done.end]
    if not touched:
        return (*before, *after)
    for at, edit in enumerate(touched):
        left = _progress(edit, done, kind)
        if left is None:
            continue
        ahead, behind = touched[:at], touched[at + 1 :]
        if any(other.end > done.start for other in ahead) or any(other.start < done.end for other in behind):
            continue
        return (*before, *ahead, *left, *(other.shifted(shift) for other in behind), *after)
    return (*before, *after) if _does_all(touched, done) else None


def _progress(edit: Planned, done: Planned, kind: Literal["fill", "edit"]) -> tuple[Planned, ...] | None:
    """The rest of `edit` after a change inside it; None when the change is outside or disagrees."""
    if done.start < edit.start or done.end > edit.end:
        return None
    head, tail = done.start - edit.start, done.end - edit.start
    if edit.removed[head:tail] != done.removed:
        return None  # the edit is for another text
    now = edit.removed[:head] + done.text + edit.removed[tail:]
    left = trimmed(Planned(edit.start, edit.start + len(now), edit.text, now))
    if (
        len(left.removed) <= len(edit.removed)
        and len(left.text) <= len(edit.text)
        and len(left.removed) + len(left.text) < len(edit.removed) + len(edit.text)
    ):
        return (left,) if left.text or left.removed else ()
    return _found_inside(edit, done) if kind == "edit" else None


def _found_inside(edit: Planned, done: Planned) -> tuple[Planned, ...] | None:
    """The two halves of an insertion around short text, typed at its place, that is found a little inside it."""
    typed = done.text
    if edit.removed or not typed or len(typed) > MAX_IMPERFECT_LENGTH:
        return None
    at = edit.text.find(typed, 0, MAX_AGREEMENT_OFFSET + len(typed))
    if at < 0:
        return None
    behind = edit.start + len(typed)
    halves = (
        Planned(edit.start, edit.start, edit.text[:at], ""),
        Planned(behind, behind, edit.text[at + len(typed) :], ""),
    )
    return tuple(half for half in halves if half.text)


def _does_all(touched: Sequence[Planned], done: Planned) -> bool:
    """Whether a change that spans all of `touched` leaves the text that they would leave."""
    if touched[0].start < done.start or touched[-1].end > done.end:
        return False
    inside = [TextEdit(a - done.start, b - done.start, text) for a, b, text in edits_of(touched)]
    fits = all(done.removed[a:b] == edit.removed for (a, b, _), edit in zip(inside, touched, strict=True))
    return fits and apply(done.removed, inside) == done.text


_JOINER: Final = "\u200d"
_MARKS: Final = frozenset({"Mn", "Me", "Mc"})


def is_boundary(text: str, at: int) -> bool:
    """Whether `text` may be cut before the character at offset `at`."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before == "\r" and after == "\n":
        return False
    if after < "\u0300":
        return before != _JOINER
    if _JOINER in {before, after} or unicodedata.category(after) in _MARKS or _is_skin_tone(after):
        return False
    # Never cut within a row of flags: which two letters form one depends on the start of the row.
    return not (_is_flag_letter(before) and _is_flag_letter(after))


def common_prefix(first: str, second: str) -> int:
    """Length of the longest common prefix that ends at a boundary of both."""
    count = parts.common_prefix(first, second)
    while count and not (is_boundary(first, count) and is_boundary(second, count)):
        count -= 1
    return count


def common_suffix(first: str, second: str) -> int:
    """Length of the longest common suffix that starts at a boundary of both."""
    count = parts.common_suffix(first, second)
    while count and not (is_boundary(first, len(first) - count) and is_boundary(second, len(second) - count)):
        count -= 1
    return count


def _is_skin_tone(character: str) -> bool:
    return "\U0001f3fb" <= character <= "\U0001f3ff"


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def place_of(text: str, row: int, lines: str) -> int | None:
    """The offset of `lines`, of several the one nearest to line `row`; None if they are not in `text`."""
    if lines and (only := text.find(lines)) == text.rfind(lines):
        return None if only < 0 else only
    *above, below = text.split("\n", row)
    wanted = len(text) - len(below) if len(above) == row else len(text)
    if not lines:
        return wanted
    places = [at for at in (text.rfind(lines, 0, wanted + len(lines)), text.find(lines, wanted)) if at >= 0]
    return min(places, key=lambda at: abs(at - wanted), default=None)
