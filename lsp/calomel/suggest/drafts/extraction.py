"""A constant or a variable was introduced: what it stands for is replaced by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from calomel.suggest.drafts.block import function_rows
from calomel.suggest.drafts.draft import EditDraft
from calomel.suggest.drafts.evidence import Evidence
from calomel.suggest.drafts.rows import Rows, indent_of
from calomel.suggest.drafts.tokens import is_literal, is_name, tokens

MAKER: Final = "extraction"
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
_PLACES: Final = 24


def extraction(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for the places of what a new line gave a name to."""
    for insertion in seen.insertions:
        if insertion.row is None:
            continue
        for number, line in enumerate(insertion.lines):
            match = _ASSIGNED.match(line)
            if match is None or not is_name(match.group(1)):
                continue
            yield from _places(rows, insertion.row + number, match.group(1), match.group(2), line)


def _places(rows: Rows, row: int, name: str, value: str, line: str) -> Iterator[EditDraft]:
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
        yield EditDraft(match.start(), match.end(), name, MAKER, 1, likeness)
        places += 1
        if places >= _PLACES:
            return
