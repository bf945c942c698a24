"""Turns an edit of a file of Python into the snippet that a model would write for it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from calomel.code.languages import grammar_of
from calomel.code.lines import columns, split_lines
from calomel.suggest.apply.source import Source, read_source

_MARKER = "# ... existing code ...\n"


def by_hunks(before: str, after: str, context: int) -> str:
    """The changed lines with so many filled lines around each, and markers for all others."""
    lines = split_lines(after)
    shown = [False] * len(lines)
    for start, end in _changed(before, after):
        shown[start:end] = [True] * (end - start)
        _show(lines, shown, range(start - 1, -1, -1), context)
        _show(lines, shown, range(end, len(lines)), context)
    return _rendered(lines, shown)


def by_definitions(before: str, after: str) -> str:
    """Every changed function as a whole, in the classes around it, with markers for all others; a line of context
    around what is in no function."""
    lines = split_lines(after)
    source = read_source(after, grammar_of("python"))
    shown = [False] * len(lines)
    for start, end in _changed(before, after):
        for line in range(max(0, start - (start == end)), min(len(lines), end + (start == end))):
            shown[line] = True
            heads = _definitions_around(source, line) if lines[line].strip() else []
            inner = [head for head in heads if not _holds(source, head)]
            for head in heads:
                shown[head] = True
            if inner:
                shown[inner[0] : source.ends[inner[0]]] = [True] * (source.ends[inner[0]] - inner[0])
            elif lines[line].strip():
                _show(lines, shown, range(line - 1, -1, -1), 1)
                _show(lines, shown, range(line + 1, len(lines)), 1)
    return _rendered(lines, shown)


def _changed(before: str, after: str) -> list[tuple[int, int]]:
    matcher = difflib.SequenceMatcher(None, split_lines(before), split_lines(after), autojunk=False)
    return [(start, end) for tag, _, _, start, end in matcher.get_opcodes() if tag != "equal"]


def _show(lines: Sequence[str], shown: list[bool], order: range, count: int) -> None:
    for line in order:
        if not count:
            break
        shown[line] = True
        count -= bool(lines[line].strip())


def _definitions_around(source: Source, line: int) -> list[int]:
    heads = [*source.path(line), source.roots[line]]
    return [head for head in heads if head in source.names and source.ends[head] > head + 1]


def _holds(source: Source, head: int) -> bool:
    return any(at in source.names and source.ends[at] > at + 1 for at in range(head + 1, source.ends[head]))


def _rendered(lines: Sequence[str], shown: Sequence[bool]) -> str:
    found: list[str] = []
    at = 0
    while at < len(lines):
        end = at + 1
        if shown[at]:
            found.append(lines[at])
        else:
            while end < len(lines) and not shown[end]:
                end += 1
            hidden = [columns(line) for line in lines[at:end] if line.strip()]
            found += [" " * min(hidden) + _MARKER] if hidden else lines[at:end]
        at = end
    return "".join(found)
