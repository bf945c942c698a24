"""Which language a text without a name is written in."""

from __future__ import annotations

import time
from collections.abc import Sequence
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
_BY_NAME: Final = {grammar.name: grammar for grammar in GRAMMARS}
# The beginning of a file tells its language.
_LOOKED_AT: Final = 20_000
_SECONDS: Final = 2.0
# More errors than this for each line: it is another language, or none.
_MOST_ERRORS: Final = 0.1


def grammar_for(text: str, language_id: str | None = None, path: str | None = None) -> Grammar | None:
    """The grammar of a language id or a path; without either, the one that reads `text` with fewest errors."""
    named = grammar_of(language_id, path)
    if named is not None or language_id or (path and "." in path.rpartition("/")[2]):
        return named
    head = text[:_LOOKED_AT]
    if len(text) > _LOOKED_AT:
        head = head[: head.rfind("\n") + 1]
    best: tuple[float, int, int] | None = None
    found: Grammar | None = None
    for place, name in enumerate(_ORDER):
        grammar = _BY_NAME[name]
        tree = parse(head, grammar)
        if tree is None:
            continue
        errors = error_count(tree, most=50)
        rank = (errors, -len(definitions_in(tree, grammar, head)), place)
        if best is None or rank < best:
            best, found = rank, grammar
        if not errors and rank[1] < 0:
            break
    lines = head.count("\n") + 1
    return found if best is not None and best[0] <= _MOST_ERRORS * lines else None


def parse(text: str, grammar: Grammar | None) -> Tree | None:
    """The tree of a text; None without a grammar, or when it takes too long."""
    parser = None if grammar is None else parser_for(grammar)
    if parser is None:
        return None
    return parse_within(parser, parser_text(text), None, time.monotonic() + _SECONDS, time.monotonic)


def error_count(tree: Tree, most: int = 1000) -> int:
    """How many places the grammar could not read; counting ends at `most`."""
    if not tree.root_node.has_error:
        return 0
    count, open_nodes = 0, [tree.root_node]
    while open_nodes and count < most:
        node = open_nodes.pop()
        if node.is_error or node.is_missing:
            count += 1
        children: Sequence[Node] = node.children
        open_nodes += [child for child in children if child.has_error or child.is_missing]
    return count
