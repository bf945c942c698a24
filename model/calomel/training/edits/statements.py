"""Statements of one line, as a person types them: at the end of the line before, behind the return key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from calomel.training.edits.source import Source
from calomel.training.edits.story import Change

STATEMENTS: Final = (
    "expression_statement",
    "return_statement",
    "assert_statement",
    "raise_statement",
    "delete_statement",
    "lexical_declaration",
    "variable_declaration",
    "throw_statement",
    "short_var_declaration",
    "assignment_statement",
    "inc_statement",
    "go_statement",
    "defer_statement",
    "let_declaration",
    "public_field_definition",
    "property_signature",
    "field_declaration",
    "import_statement",
    "import_from_statement",
    "use_declaration",
)


def one_line_statements(source: Source) -> Iterator[Node]:
    """Statements that have a line of their own, by position."""
    text = source.text
    for node in source.walk(*STATEMENTS):
        start, end = source.span(node)
        line_end = text.find("\n", start)
        line_end = len(text) if line_end < 0 else line_end
        alone = not text[source.line_start(start) : start].strip() and text[end:line_end].strip() in {"", ";", ","}
        if alone and end <= line_end:
            yield node


def line_removal(source: Source, start: int, end: int) -> Change:
    """Take out the lines of a span as one would have typed them: with the line end before them."""
    begin = source.line_start(start)
    stop = source.text.find("\n", end)
    stop = len(source.text) if stop < 0 else stop
    return Change(begin - 1, stop, "") if begin else Change(0, min(stop + 1, len(source.text)), "")
