"""Which language a text without a name is written in."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node, Tree

from calomel.workspace.definitions import definitions_in
from calomel.workspace.languages import GRAMMARS, Grammar, grammar_of, parser_for
from calomel.workspace.lazy_tree import parse_within, parser_text

# Strictest first: of two grammars that read a text equally well, the one that reads less else is right.
_ORDER: Final = (
    "python", "go", "rust", "java", "c_sharp", "typescript", "tsx", "javascript", "c", "cpp", "ruby", "json", "css",
    "bash", "html",
)  # fmt: skip
# Of these a text may become another by what is added to it.
_DIALECTS: Final = (("typescript", "tsx", "javascript"), ("c", "cpp"))
_BY_NAME: Final = {grammar.name: grammar for grammar in GRAMMARS}
# The beginning of a file tells its language.
_LOOKED_AT: Final = 20_000
_SECONDS: Final = 2.0
# More errors than this for each line: it is another language, or none.
_MOST_ERRORS: Final = 0.1
_FEW_ERRORS: Final = 0.02
_AT_MARGIN: Final = re.compile(r"^(?=[^\W\d])", re.MULTILINE)
# Kinds of nodes of the grammar for Python.
_BLOCKS: Final = frozenset({"module", "block"})
_NO_STATEMENTS: Final = frozenset({"comment", "line_continuation"})
_CLAUSES: Final = frozenset({"elif_clause", "else_clause", "except_clause", "except_group_clause", "finally_clause"})
_HANDLERS: Final = frozenset({"except_clause", "except_group_clause", "finally_clause", "ERROR"})
_COMPOUND: Final = _CLAUSES | {
    "block", "case_clause", "class_definition", "decorated_definition", "for_statement", "function_definition",
    "if_statement", "match_statement", "try_statement", "while_statement", "with_statement",
}  # fmt: skip


def grammar_for(text: str, language_id: str | None = None, path: str | None = None) -> Grammar | None:
    """The grammar of a language id or a path; without either, the one that reads `text` with fewest errors."""
    named = grammar_of(language_id, path)
    if named is not None or language_id or (path and "." in path.rpartition("/")[2]):
        return named
    head = text[:_LOOKED_AT]
    if len(text) > _LOOKED_AT:
        # Not within a statement, which would be an error in every language but those that know none.
        cut = max((found.start() for found in _AT_MARGIN.finditer(head)), default=0)
        head = head[: cut if cut > len(head) // 2 else head.rfind("\n") + 1]
    lines = head.count("\n") + 1
    best: tuple[float, int, int] | None = None
    found: Grammar | None = None
    for place, name in enumerate(_ORDER):
        grammar = _BY_NAME[name]
        tree = parse(head, grammar)
        if tree is None:
            continue
        errors = error_count(tree, grammar, most=50)
        defined = len(definitions_in(tree, grammar, head))
        # A file that is being worked on has a mistake or two; what reads anything, as text, defines nothing.
        few = bool(defined) and errors <= _FEW_ERRORS * lines
        rank = (0 if few else errors, -defined, place)
        if best is None or rank < best:
            best, found = rank, grammar
        if defined and not errors:
            break
    return found if best is not None and best[0] <= _MOST_ERRORS * lines else None


def parse(text: str, grammar: Grammar | None) -> Tree | None:
    """The tree of a text; None without a grammar, or when it takes too long."""
    parser = None if grammar is None else parser_for(grammar)
    if parser is None:
        return None
    return parse_within(parser, parser_text(text), None, time.monotonic() + _SECONDS, time.monotonic)


def error_count(tree: Tree, grammar: Grammar | None, most: int = 1000) -> int:
    """How many places the grammar could not read, or should not have; counting ends at `most`.

    The one for Python reads lines at any indentation, blocks without a line and `try` alone, which Python does not.
    """
    count = _misplaced_lines(tree.root_node, most) if grammar is not None and grammar.name == "python" else 0
    open_nodes = [tree.root_node] if tree.root_node.has_error else []
    while open_nodes and count < most:
        node = open_nodes.pop()
        if node.is_error or node.is_missing:
            count += 1
        open_nodes += [child for child in _children(node) if child.has_error or child.is_missing]
    return count


def dialects(grammar: Grammar | None) -> tuple[Grammar, ...]:
    """Of what other languages a text may turn out to be when it goes on."""
    names = next((names for names in _DIALECTS if grammar is not None and grammar.name in names), ())
    return tuple(_BY_NAME[name] for name in names if grammar is not _BY_NAME[name])


def _misplaced_lines(root: Node, most: int) -> int:
    """Statements of Python that do not begin where their block does, blocks without a statement, `try` alone."""
    count = 0
    # With each node the column of the statement that it belongs to, and the line on which what is before it ends.
    left: list[tuple[Node, int, int]] = [(root, -1, -1)]
    while left and count < most:
        node, margin, row = left.pop()
        is_block, is_try = node.type in _BLOCKS, node.type == "try_statement"
        column: int | None = None
        # Something that the node needs: a statement, or a handler.
        lacking = is_try or (is_block and node is not root)
        for child in _children(node):
            begin = child.start_point
            if is_block and child.is_named and child.type not in _NO_STATEMENTS:
                lacking = False
                if begin.row > row:
                    column = max(begin.column, margin + 1) if column is None else column
                    count += begin.column != column
            elif is_try and child.type in _HANDLERS:
                lacking = False
            if child.type in _CLAUSES and begin.row > node.start_point.row:
                count += begin.column != margin
            if child.type in _COMPOUND:
                left.append((child, margin if child.type == "block" else begin.column, row))
            row = child.end_point.row
        count += lacking
    return count


def _children(node: Node) -> Iterator[Node]:
    """One after another: of a long file, the library would make all of them while nothing else runs."""
    cursor = node.walk()
    more = cursor.goto_first_child()
    while more:
        if cursor.node is not None:
            yield cursor.node
        more = cursor.goto_next_sibling()
