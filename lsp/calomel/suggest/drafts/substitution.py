"""What the last edits put in the place of something, put in its place elsewhere, where its neighbours are the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from calomel.suggest.drafts.evidence import EditDraft, Evidence
from calomel.suggest.drafts.rename import renamings
from calomel.suggest.drafts.text import (
    Rows,
    changes,
    function_rows,
    indent_of,
    is_distinctive,
    is_literal,
    is_name,
    tokens,
)

MAKER: Final = "substitution"
# Tokens on either side that are compared.
_CONTEXT: Final = 4
# Neighbours that must be the same for a text that says little by itself.
_NEIGHBOURS: Final = 3
_PLACES: Final = 48


@dataclass(frozen=True, slots=True)
class Substitution:
    """`removed` became `inserted`, between these neighbours; blanks are not among them.

    Attributes:
        removed, inserted: the texts; either may be empty.
        left: tokens before it, nearest first.
        right: tokens behind it, nearest first.
        support: edits that did the same.
    """

    removed: str
    inserted: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    support: int = 1


def substitution(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for what was replaced, inserted into a line or deleted from it."""
    known = substitutions(seen)
    taken_back = {(each.inserted, each.removed) for each in known}
    edited = {edit.row for edit in seen.edits}
    local = {(each.old, each.new) for each in renamings(rows, seen)}
    for each in known:
        if (each.removed, each.inserted) not in taken_back | local:
            yield from _places(rows, each, edited)


def substitutions(seen: Evidence) -> list[Substitution]:
    """What the last edits substituted, newest first."""
    found: dict[tuple[str, str], Substitution] = {}
    for edit in seen.telling():
        old, new = tokens(edit.old), tokens(edit.new)
        ops = changes(old, new)
        for op in ops:
            removed = "".join(token.text for token in old[op.first : op.last])
            inserted = "".join(op.inserted)
            if removed.split() == inserted.split():
                continue
            # One of several changes of a line means little alone, unless it puts one thing in the place of another.
            if len(ops) > 1 and not (is_distinctive(removed) and inserted.strip()):
                continue
            left = tuple(token.text for token in reversed(old[: op.first]) if not token.text.isspace())[:_CONTEXT]
            right = tuple(token.text for token in old[op.last :] if not token.text.isspace())[:_CONTEXT]
            # What is added to a list is added to that of the same name alone.
            if not removed.strip() and _is_item(inserted, left, right):
                continue
            key = removed.strip(), inserted.strip()
            known = found.get(key)
            if known is None:
                found[key] = Substitution(removed, inserted, left, right)
            else:
                # What two edits have in common is what matters.
                found[key] = replace(
                    known,
                    left=known.left[: _common(known.left, left)],
                    right=known.right[: _common(known.right, right)],
                    support=known.support + 1,
                )
    return list(found.values())


def _is_item(inserted: str, left: Sequence[str], right: Sequence[str]) -> bool:
    new = inserted.strip()
    alone = left[:1] in {("(",), ("[",), ("{",)} and right[:1] in {(")",), ("]",), ("}",)}
    return new.startswith(",") or new.endswith(",") or alone


def _places(rows: Rows, wanted: Substitution, edited: set[int | None]) -> Iterator[EditDraft]:
    if wanted.removed:
        yield from _replaced(rows, wanted)
    elif wanted.left or wanted.right:
        yield from _inserted(rows, wanted, edited)


def _replaced(rows: Rows, wanted: Substitution) -> Iterator[EditDraft]:
    target = [token.text for token in tokens(wanted.removed)]
    # One name for another is a rename, or something that holds between these neighbours alone.
    renames = is_name(wanted.removed) and is_name(wanted.inserted)
    distinctive = is_distinctive(wanted.removed) and bool(wanted.inserted) and not renames
    at, places, last_row = 0, 0, -1
    while places < _PLACES and (at := rows.text.find(wanted.removed, at)) >= 0:
        row = rows.row(at)
        at = rows.start(row + 1) if row > last_row else at + 1
        if row <= last_row:
            continue
        last_row = row
        line = tokens(rows.lines[row])
        texts = [token.text for token in line]
        for first in range(len(line) - len(target) + 1):
            last = first + len(target)
            if texts[first:last] != target:
                continue
            left, right = _agreement(texts, first, last, wanted)
            if not distinctive and not _enough(left, right, wanted):
                continue
            # It stands there already: `foo` in `old.foo` where `foo` became `old.foo`.
            if _stands(rows.lines[row], line[first].start, wanted) or _defines(texts[:first], wanted.inserted):
                continue
            places += 1
            start = rows.start(row)
            low, high = start + line[first].start, start + line[last - 1].end
            likeness = _likeness(left, right, wanted)
            yield EditDraft(low, high, wanted.inserted, MAKER, wanted.support, likeness)


def _inserted(rows: Rows, wanted: Substitution, edited: set[int | None]) -> Iterator[EditDraft]:
    """An insertion has nothing to look for but its neighbours."""
    near = [token for token in (*wanted.left[:2], *wanted.right[:2]) if is_name(token)]
    if not near:
        return
    places = 0
    for row, text in enumerate(rows.lines):
        if row in edited or not any(name in text for name in near):
            continue
        line = tokens(text)
        texts = [token.text for token in line]
        for first in range(len(line) + 1):
            if first < len(line) and texts[first].isspace() and not wanted.inserted[:1].isspace():
                continue
            left, right = _agreement(texts, first, first, wanted)
            if not _enough(left, right, wanted) or not _names_agree(wanted, left, right):
                continue
            at = line[first].start if first < len(line) else len(text)
            if _stands(text, at, wanted):
                continue
            places += 1
            offset = rows.start(row) + at
            yield EditDraft(offset, offset, wanted.inserted, MAKER, wanted.support, _likeness(left, right, wanted))
            break
        if places >= _PLACES:
            return


def _defines(before: Sequence[str], name: str) -> bool:
    """Whether a line says what the new name stands for: there the old text is to stay."""
    return is_name(name) and name in before and any(token in {"=", ":="} for token in before)


def _stands(line: str, at: int, wanted: Substitution) -> bool:
    """Whether the new text is there already, around or beside `at`."""
    new = wanted.inserted.strip()
    if not new:
        return False
    shift = wanted.inserted.find(wanted.removed.strip()) if wanted.removed.strip() else -1
    if shift >= 0 and line[max(0, at - shift) :].startswith(wanted.inserted):
        return True
    if wanted.removed:
        return False
    return line[at:].lstrip().startswith(new) or line[:at].rstrip().endswith(new)


def _agreement(texts: list[str], first: int, last: int, wanted: Substitution) -> tuple[int, int]:
    left = [text for text in reversed(texts[:first]) if not text.isspace()][:_CONTEXT]
    right = [text for text in texts[last:] if not text.isspace()][:_CONTEXT]
    return _common(tuple(left), wanted.left), _common(tuple(right), wanted.right)


def _enough(left: int, right: int, wanted: Substitution) -> bool:
    """Whether the neighbours are the same as far as they must be; the end of a line is a neighbour too."""
    need = min(_NEIGHBOURS, len(wanted.left) + len(wanted.right))
    if wanted.support > 1:
        return left >= min(1, len(wanted.left)) and right >= min(1, len(wanted.right)) and left + right >= min(2, need)
    return left + right >= need and (left > 0 or not wanted.left) and (right > 0 or not wanted.right)


def _names_agree(wanted: Substitution, left: int, right: int) -> bool:
    """Whether a name is among the neighbours that are the same: brackets and commas stand everywhere."""
    return any(is_name(token) for token in (*wanted.left[:left], *wanted.right[:right]))


def _likeness(left: int, right: int, wanted: Substitution) -> float:
    whole = len(wanted.left) + len(wanted.right)
    return 0.3 + 0.7 * (left + right) / whole if whole else 0.5


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


EXTRACTION: Final = "extraction"
_ASSIGNED: Final = re.compile(
    r"^\s*(?:(?:export|default|pub(?:\([^)]*\))?|public|private|static|final|readonly)\s+)*"
    r"(?:(?:const|let|var|val)\s+(?:mut\s+)?)?([^\W\d]\w*)\s*(?::\s*[^=]+?|\s[\w.*\[\]]+)?\s*:?=(?!=)\s*(.+?);?\s*$"
)
_LITERAL: Final = re.compile(r"-?\d[\w.]*|/(?:[^/\\\s]|\\.)+/[a-z]*")
# Small numbers mean something else at each place.
_SMALL: Final = re.compile(r"-?\d{1,2}")
# `0`, `1`, `""` and the like all the more.
_COMMON: Final = frozenset({"0", "1", "-1", '""', "''", "``", "None", "null", "nil", "true", "false"})
_EXPRESSION: Final = 8
_MOST_REPLACED: Final = 24


def extraction(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for the places of what a new line gave a name to."""
    for insertion in seen.insertions:
        if insertion.row is None:
            continue
        for number, line in enumerate(insertion.lines):
            match = _ASSIGNED.match(line)
            if match is None or not is_name(match.group(1)):
                continue
            yield from _places_of_value(rows, insertion.row + number, match.group(1), match.group(2), line)


def _places_of_value(rows: Rows, row: int, name: str, value: str, line: str) -> Iterator[EditDraft]:
    parts = tokens(value)
    literal = (len(parts) == 1 and is_literal(value)) or _LITERAL.fullmatch(value) is not None
    if value in _COMMON or (
        not literal and (len(value) < _EXPRESSION or not any(is_name(part.text) for part in parts))
    ):
        return
    if not literal and value[-1:] in "([{,":
        return
    # A value that was computed holds where it was computed; a constant everywhere.
    inside = function_rows(rows, row) if indent_of(line) else None
    scope = inside if inside is not None and row != inside.start else range(len(rows))
    quoted = value[0] in "\"'`"
    pattern = re.compile((r"" if quoted else r"(?<![\w.])") + re.escape(value) + (r"" if quoted else r"(?![\w.])"))
    likeness = 0.5 if not literal else 0.35 if _SMALL.fullmatch(value) else 0.8
    places = 0
    for match in pattern.finditer(rows.text):
        at = rows.row(match.start())
        if at == row or at not in scope or (not literal and at < row):
            continue
        other = _ASSIGNED.match(rows.lines[at])
        if other is not None and other.group(2) == value and literal and is_name(other.group(1)):
            continue
        before = rows.lines[at][: match.start() - rows.start(at)]
        if before.count('"') % 2 or re.search(r"(?:^|\s)(?:#|//)", before) or before[-1:] in {"f", "r", "b"}:
            continue
        yield EditDraft(match.start(), match.end(), name, EXTRACTION, 1, likeness)
        places += 1
        if places >= _MOST_REPLACED:
            return
