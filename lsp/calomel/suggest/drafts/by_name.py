"""Parameters are passed by name from now on: the calls name what they passed by place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from calomel.suggest.drafts.arguments import changed_lists
from calomel.suggest.drafts.block import is_definition
from calomel.suggest.drafts.draft import EditDraft
from calomel.suggest.drafts.evidence import Evidence
from calomel.suggest.drafts.listed import Listed, calls, read_list
from calomel.suggest.drafts.rows import Rows

MAKER: Final = "by_name"
_NAME: Final = re.compile(r"[^\W\d][\w$]*")
_RECEIVER: Final = re.compile(r"(?:self|cls)\b")
_KEYWORD: Final = re.compile(r"[^\W\d]\w*\s*=(?!=)")
_PLACES: Final = 32


def by_name(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for calls: `f(1, 2)` becomes `f(1, b=2)` behind Python's `*`, `f({ a: 1, b: 2 })` for options."""
    for _, old, new in changed_lists(rows, seen):
        before = {listed.name: listed.texts(old) for listed in calls(old)}
        for listed in calls(new):
            items, parameters = listed.texts(new), before.get(listed.name)
            if parameters is None or items == parameters:
                continue
            if "*" in items and "*" not in parameters:
                names = [item for item in parameters if not _RECEIVER.match(item)]
                first = items.index("*") - (len(parameters) - len(names))
                yield from _keywords(rows, listed.name, names, first)
            elif len(items) >= 1 and items[-1].startswith("{") and len(parameters) > len(items) - 1:
                yield from _options(rows, listed.name, parameters, items)


def _called(rows: Rows, name: str) -> Iterator[tuple[Listed, list[str]]]:
    for count, listed in enumerate(calls(rows.text, name)):
        row, last = rows.row(listed.name_start), rows.row(listed.end)
        before = rows.text[rows.start(row) : listed.name_start]
        if count >= _PLACES:
            return
        if not is_definition(before, rows.text[listed.end + 1 : rows.end(last)]):
            yield listed, listed.texts(rows.text)


def _keywords(rows: Rows, name: str, parameters: list[str], first: int) -> Iterator[EditDraft]:
    names = [match.group() if (match := _NAME.match(item)) else "" for item in parameters]
    for listed, items in _called(rows, name):
        if len(items) > len(names) or any(item.startswith("*") for item in items):
            continue
        parts, at = "", listed.items[0][0] if items else 0
        changed = False
        for index, (start, end) in enumerate(listed.items):
            named = index < first or _KEYWORD.match(items[index]) is not None or not names[index]
            changed = changed or not named
            parts += rows.text[at:start] + ("" if named else f"{names[index]}=") + rows.text[start:end]
            at = end
        if changed:
            yield EditDraft(listed.items[0][0], at, parts, MAKER, 1, 1.0)


def _options(rows: Rows, name: str, parameters: list[str], items: list[str]) -> Iterator[EditDraft]:
    kept = len(items) - 1
    opened = read_list(items[-1], 0)
    if opened is None:
        return
    names = [match.group() for item in opened.texts(items[-1]) if (match := _NAME.match(item))]
    moved = [match.group() for item in parameters[kept:] if (match := _NAME.match(item))]
    if names != moved or not names:
        return
    for listed, passed in _called(rows, name):
        if not kept < len(passed) <= kept + len(names) or passed[kept].startswith(("{", "...")):
            continue
        pairs = [value if key == value else f"{key}: {value}" for key, value in zip(names, passed[kept:], strict=False)]
        start, end = listed.items[kept][0], listed.items[-1][1]
        yield EditDraft(start, end, f"{{ {', '.join(pairs)} }}", MAKER, 1, 1.0)
