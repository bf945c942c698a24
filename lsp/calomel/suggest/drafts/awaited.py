"""A function became asynchronous: its calls wait for it, and the functions around these become asynchronous too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from calomel.suggest.drafts.block import function_rows, is_definition
from calomel.suggest.drafts.draft import EditDraft
from calomel.suggest.drafts.evidence import Evidence
from calomel.suggest.drafts.listed import calls
from calomel.suggest.drafts.rows import Rows

MAKER: Final = "awaited"
_HEAD: Final = re.compile(r"\basync\s+(?:(?:def|function\*?|fn)\s+)?([^\W\d][\w$]*)\s*(?:<[^(]*>)?\(")
_KEYWORD: Final = re.compile(r"\b(?:def|function|fn)\b")
_PLACES: Final = 24


def awaited(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for the calls of functions that the last edits made asynchronous, in Python, TypeScript and Rust."""
    names = {}
    for edit in seen.edits:
        match = _HEAD.search(edit.new)
        if match is not None and not re.search(r"\basync\b", edit.old):
            names[match.group(1)] = re.search(r"\bfn\b", edit.new) is not None
    support = max(1, len(names))
    heads: set[int] = set()
    for name, behind in names.items():
        for row, draft in _calls(rows, name, support, behind=behind):
            if draft is not None:
                yield draft
            around = function_rows(rows, row)
            if around is not None:
                heads.add(around.start)
    for row in heads:
        found = _KEYWORD.search(rows.lines[row])
        if found is not None and not re.search(r"\basync\b", rows.lines[row]):
            at = rows.start(row) + found.start()
            yield EditDraft(at, at, "async ", MAKER, support, 0.95)


def _calls(rows: Rows, name: str, support: int, *, behind: bool) -> Iterator[tuple[int, EditDraft | None]]:
    """The lines of the calls, and how they wait: `behind` them or before; None for those that do already."""
    for listed in islice(calls(rows.text, name), _PLACES):
        row = rows.row(listed.name_start)
        before = rows.text[rows.start(row) : listed.name_start]
        rest = rows.text[listed.end + 1 : rows.end(rows.row(listed.end))]
        if is_definition(before, rest) or _KEYWORD.search(before.rpartition("(")[2]):
            continue
        if behind:
            waits = re.match(r"\s*\.await\b", rest) is not None
            yield row, None if waits else EditDraft(listed.end + 1, listed.end + 1, ".await", MAKER, support)
            continue
        # The receiver waits too: `await self.store.load()`.
        receiver = re.search(r"(?:[\w$]+(?:\?\.|\.))*$", before)
        at = listed.name_start - (len(receiver.group()) if receiver else 0)
        waits = re.search(r"\bawait\s+$", rows.text[rows.start(row) : at]) is not None
        yield row, None if waits else EditDraft(at, at, "await ", MAKER, support)
