"""Edits that remember what they replace, so that they can be checked against a text that has changed since."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final

from calomel.code.lines import LINE_END
from calomel.code.names import Names
from calomel.infer.completer import Candidate, Kind
from calomel.prompts.parts import line_end, line_start, row_of
from calomel.suggest.silence import Silence
from calomel.workspace.edits import Planned, TextEdit, slid

# Characters in which a document's line ends are looked for.
_LOOKED_AT: Final = 4096


def line_end_of(text: str) -> str:
    r"""The first line end of `text`; \n if its start has none."""
    match = LINE_END.search(text, 0, _LOOKED_AT)
    if match and match.group() == "\r" and text[match.end() : match.end() + 1] == "\n":
        return "\r\n"
    return match.group() if match else "\n"


def with_line_ends_between(text: str, before: str, behind: str) -> str:
    """`text`, inserted between two others, with the line end of its line; for the last line, that of the line above."""
    if LINE_END.search(behind, 0, _LOOKED_AT):
        return with_line_ends_of(text, behind)
    above = LINE_END.findall(before[-_LOOKED_AT:])
    return with_line_ends_of(text, above[-1] if above else before)


def with_line_ends_like(text: str, old: str, document: str) -> str:
    """`text`, a rewrite of `old`, with the line ends of its lines; new lines end as the document's do."""
    ends = LINE_END.findall(old)
    if len(set(ends)) < 2:  # noqa: PLR2004 (one kind, as nearly everywhere)
        return with_line_ends_of(text, old if ends else document)
    lines, usual = LINE_END.split(text), line_end_of(document)
    line_ends = [usual] * len(lines)
    for _, low, high, at, to in SequenceMatcher(None, LINE_END.split(old), lines, autojunk=False).get_opcodes():
        kept = ends[low:high][: to - at]
        line_ends[at : at + len(kept)] = kept
    line_ends[-1] = ""
    return "".join(line + end for line, end in zip(lines, line_ends, strict=True))


def with_line_ends_of(text: str, document: str) -> str:
    """`text` with the line ends of `document`."""
    if "\n" not in text and "\r" not in text:
        return text
    return LINE_END.sub(line_end_of(document), text)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggestion for the editor.

    Attributes:
        id: its name in commands and outcomes. Typing into a suggestion shortens it and keeps its id.
        uri: of the document.
        revision: of the document whose text the offsets refer to.
        kind: `fill` inserts at the cursor, `edit` rewrites lines.
        edits: sorted, not adjacent, all in offsets of the same text.
        probability: of acceptance, as estimated by the calibrator; 0 to 1.
        cursor_after: offset of the cursor in the resulting text, see `to_its_end`; None for the end of the last edit.
        candidate: what it came from, with the model's signals.
        waited: seconds of debounce before the model was asked.
        cached: no model was asked for this answer.
        others: alternatives, likeliest first.
        total: how many suggestions the answer that it belongs to had, itself included; they follow each other.
        rest: the edits of those that follow this one, in offsets of the same text.
    """

    id: str
    uri: str
    revision: int
    kind: Kind
    edits: tuple[TextEdit, ...]
    probability: float = 0.0
    cursor_after: int | None = None
    candidate: Candidate = field(default_factory=lambda: Candidate(""), repr=False)
    waited: float = 0.0
    cached: bool = False
    others: tuple[Suggestion, ...] = ()
    total: int = 1
    rest: tuple[tuple[TextEdit, ...], ...] = ()

    @property
    def index(self) -> int:
        """Its place among those of its answer, from 1."""
        return self.total - len(self.rest)

    @property
    def maker(self) -> str:
        """Who proposed it: the model, or a rule that the model agreed with."""
        return self.candidate.maker


Answer = Suggestion | Silence


# Edits with no more unchanged lines between them are shown together: those that a unified diff shows around a hunk.
TOGETHER_ROWS: Final = 3
# Lines from the first to the last of edits that are shown together: what one sees without looking for it.
_IN_SIGHT: Final = 25
_NAME: Final = re.compile(r"[^\W\d]\w{2,}")


def grouped(text: str, edits: Sequence[Planned], usual: Collection[str] = ()) -> tuple[tuple[Planned, ...], ...]:
    """The edits that belong together, in the order of the text: of lines close to each other, or of the same names.

    Args:
        text: of the document.
        edits: sorted, not adjacent.
        usual: words that are in any text of the language, so that they do not connect edits.
    """
    if not edits:
        return ()
    near: list[list[Planned]] = [[edits[0]]]
    for edit in edits[1:]:
        if row_of(text, edit.start) - row_of(text, near[-1][-1].end) <= TOGETHER_ROWS + 1:
            near[-1].append(edit)
        else:
            near.append([edit])
    groups: list[list[Planned]] = [near[0]]
    for group in near[1:]:
        rows = row_of(text, group[-1].end) - row_of(text, groups[-1][0].start)
        if rows < _IN_SIGHT and not _names(text, groups[-1], usual).isdisjoint(_names(text, group, usual)):
            groups[-1] += group
        else:
            groups.append(group)
    return tuple(map(tuple, groups))


def _names(text: str, edits: Sequence[Planned], usual: Collection[str]) -> set[str]:
    """The names that come with some edits, or go."""
    names: set[str] = set()
    for edit in edits:
        start, end = line_start(text, edit.start), line_end(text, edit.end)
        old, new = text[start:end], text[start : edit.start] + edit.text + text[edit.end : end]
        names |= set(_NAME.findall(old)) ^ set(_NAME.findall(new))
    return names.difference(usual)


def at_cursor(text: str, edits: Sequence[Planned], cursor: int) -> tuple[Planned, ...]:
    """The same edits, with insertions moved to the cursor where the result is the same."""
    chosen = [slid(edit, text, cursor) for edit in edits]
    return tuple(edits if any(left.end > right.start for left, right in pairwise(chosen)) else chosen)


def to_its_end(text: str, edit: TextEdit, names: Names) -> TextEdit:
    """The same change of `text` as an edit that ends where the cursor belongs once it is accepted.

    That is behind the whole name or the new lines that it makes, even if their ends stood there before, and behind a
    new line rather than before the one below: clients put the cursor where an edit ends.
    """
    new, removed = edit.text, text[edit.start : edit.end]
    ends = next((each for each in ("\r\n", "\n", "\r") if new.endswith(each)), "")
    if ends and new.strip() and text.endswith(ends, 0, edit.end) and (not removed or removed.endswith(ends)):
        start = edit.start if removed else edit.start - len(ends)
        return TextEdit(start, edit.end - len(ends), ("" if removed else ends) + new[: -len(ends)])
    low, high = line_start(text, edit.start), line_end(text, edit.end)
    if len(LINE_END.findall(new)) > len(LINE_END.findall(removed)):
        rest = "" if ends else text[edit.end : high]
    else:
        result = text[low : edit.start] + new + text[edit.end : high]
        rest = names.going_on(result, edit.start - low + len(new)) or names.going_on(text, edit.end)
    return TextEdit(edit.start, edit.end + len(rest), new + rest)


def rows_between(rows: tuple[int, int], row: int) -> int:
    """Lines between `row` and the nearer end of `rows`; 0 within them."""
    return max(rows[0] - row, row - rows[1], 0)
