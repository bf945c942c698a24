"""What comments and docstrings say of parameters, one line or a few for each."""

from __future__ import annotations

import re
from dataclasses import dataclass

from calomel.training.edits.functions import Function
from calomel.training.edits.source import Source
from calomel.training.edits.story import Change


@dataclass(frozen=True, slots=True)
class Entry:
    """The whole lines that describe one parameter; `name` says where in them it is named (characters of the file)."""

    start: int
    end: int
    name: tuple[int, int]


def region(source: Source, function: Function) -> tuple[int, int] | None:
    """Where a function is described: Python's docstring, the comment before a function of JavaScript."""
    if source.language == "python":
        first = function.body.named_children[:1] if function.body is not None else []
        if first and first[0].type == "expression_statement" and first[0].children[0].type == "string":
            return source.span(first[0])
        return None
    if source.language not in ("typescript", "javascript"):
        return None
    node = function.node
    while node.prev_sibling is None or node.type in ("variable_declarator", "arrow_function", "function_expression"):
        if node.parent is None or node.parent.type in ("program", "class_body", "statement_block"):
            return None
        node = node.parent
    if node.parent is not None and node.parent.type == "export_statement":
        node = node.parent
    before = node.prev_sibling
    return source.span(before) if before is not None and before.type == "comment" else None


def entry(source: Source, function: Function, name: str) -> Entry | None:
    """What the function's description says of one parameter."""
    where = region(source, function)
    if where is None:
        return None
    # reStructuredText, JSDoc, or a Google section; lines indented deeper go on about the same.
    pattern = re.compile(
        r"^(?P<indent>[ \t]*)(?:\*[ \t]*@param(?: \{[^}\n]*\})? \[?|:param(?: [^:\n]+)? )?(?P<name>"
        + re.escape(name)
        + r")\b(?: ?\([^)\n]*\))?(?:[:\]]| -|$|(?= \w))[^\n]*\n"
        r"(?:(?P=indent)(?: {2,}|\t)[^\n@:]*\S[^\n]*\n)*",
        re.MULTILINE,
    )
    for found in pattern.finditer(source.text, source.line_start(where[0]), where[1]):
        line = source.text[found.start() : found.start("name")]
        if "param" in line or source.text[found.end("name") :].lstrip().startswith((":", "(")):
            return Entry(found.start(), found.end(), found.span("name"))
    return None


def added(source: Source, function: Function, after: str, name: str, words: str) -> Change | None:
    """One more entry, written like the one of the parameter `after`, and behind it; None where that has none."""
    found = entry(source, function, after)
    if found is None:
        return None
    line = source.text[found.start : found.end].split("\n")[0]
    lead = source.text[found.start : found.name[0]]
    behind = line[found.name[1] - found.start :]
    if "{" in lead or "[" in lead or "(" in behind.split(":")[0]:
        return None
    mark = ": " if behind.startswith(":") else " - " if behind.startswith(" - ") else " "
    return Change(found.end, found.end, f"{lead}{name}{mark}{words}\n")
