"""What a syntax tree knows about a file: its definitions, and where it can be cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Final

from tree_sitter import Node, Query, QueryCursor, QueryError, Tree

from calomel.code.budget import check
from calomel.code.languages import (
    CALLABLE_VALUES,
    CONTAINERS,
    VARIABLES,
    WITH_BODY_ONLY,
    Grammar,
    is_comment,
    load,
)
from calomel.code.trees import way
from calomel.prompts.parts import split_lines

# Generated tables can contain more; nobody reads them.
_MOST: Final = 5_000
# In bytes, two per character.
_SLICE: Final = 60_000
# These belong to the definition that they enclose.
_WRAPPERS: Final = frozenset({
    "const_declaration", "decorated_definition", "export_statement", "lexical_declaration", "template_declaration",
    "type_declaration", "var_declaration", "variable_declaration",
})  # fmt: skip
# C: levels from the declaration of a function down to its name.
_DEEPEST_DECLARATOR: Final = 6
# Comments between a signature and its body.
_COMMENTS: Final = 8
# A signature is meant to be read; anything longer is data.
LONGEST_SIGNATURE: Final = 600


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition in a file, or around a place.

    Attributes:
        kind: "function", "class", "module" …; "block" where only the indentation is known.
        name: of what is defined; empty when it has none.
        signature: the lines before the body; no line end after the last one.
        start, end: offsets of the whole, with decorators, in code points.
        head, body: offsets of the signature's start and of the body's; `body` is `end` without a body.
        start_line, end_line: the first and the last line of the whole.
        body_line: the first line after the signature; beyond `end_line` when there is no body.
        depth: how many definitions enclose it.
    """

    kind: str
    name: str
    signature: str
    start: int
    end: int
    head: int
    body: int
    start_line: int
    end_line: int
    body_line: int
    depth: int = 0


# For definitions that may be anywhere, and for those at the top level only.
_Queries = tuple[Query, Query | None]


def definitions_in(tree: Tree, grammar: Grammar, text: str) -> tuple[Definition, ...]:
    """All definitions in file order, outer before inner. `text` is what the tree was parsed from. Raises SpentError."""
    queries = _queries(grammar)
    if queries is None:
        return ()
    found: list[Definition] = []
    ends: list[int] = []
    for node in islice(_captured(tree.root_node, queries), _MOST):
        check()
        definition = definition_at(node, _above(node), grammar, text)
        if definition is None:
            continue
        while ends and ends[-1] <= definition.start:
            ends.pop()
        found.append(replace(definition, depth=len(ends)))
        ends.append(definition.end)
    return tuple(found)


def _captured(root: Node, queries: _Queries) -> Iterator[Node]:
    """The nodes of the queries in file order, outer before inner.

    One slice of the text at a time: nothing else in the program runs during a query.
    """
    for start in range(root.start_byte, root.end_byte, _SLICE):
        found: dict[int, Node] = {}
        for query, depth in zip(queries, (None, 1), strict=True):
            if query is not None:
                cursor = QueryCursor(query)
                cursor.set_byte_range(start, min(start + _SLICE, root.end_byte))
                if depth is not None:
                    cursor.set_max_start_depth(depth)
                found |= {node.id: node for node in cursor.captures(root).get("d", [])}
        check()
        nodes = sorted(found.values(), key=lambda node: (node.start_byte, -node.end_byte))
        # Nodes that began before this slice have been found already.
        yield from (node for node in nodes if node.start_byte >= start)


def enclosing(tree: Tree, grammar: Grammar, text: str, offset: int) -> tuple[Definition, ...]:
    """The definitions around the character at `offset`, the innermost last."""
    kinds = grammar.definitions
    steps = [step.node for step in way(tree, offset)]
    found: list[Definition] = []
    for depth, node in enumerate(steps):
        if depth and node.type in kinds:
            definition = definition_at(node, reversed(steps[:depth]), grammar, text)
            if definition is not None and (definition.body < definition.end or node.type not in VARIABLES):
                found.append(replace(definition, depth=len(found)))
    return tuple(found)


def _above(node: Node) -> Iterator[Node]:
    """The nodes around a node, the nearest first. Each is looked for from the root, so take few."""
    while (parent := node.parent) is not None:
        node = parent
        yield node


def definition_at(node: Node, above: Iterable[Node], grammar: Grammar, text: str) -> Definition | None:
    """The definition in a node; its depth is left at 0. `above` it are these nodes, the nearest first."""
    name = _name(node)
    if name is None:
        return None
    body = _body(node)
    if node.type in WITH_BODY_ONLY and body is None:
        return None
    kind = grammar.definitions[node.type]
    if kind == "variable" and body is not None:
        kind = "class" if body.type.startswith("class") else "function"
    whole = _whole(node, above)
    head_end = node.end_byte if body is None else _before(body)
    first_line, whole_line = node.start_point.row, whole.start_point.row
    start, end = whole.start_byte // 2, whole.end_byte // 2
    head = start if whole_line == first_line else node.start_byte // 2
    body_start = head_end // 2
    return Definition(
        kind=kind,
        name=text[name.start_byte // 2 : name.end_byte // 2],
        signature=text[head : min(body_start, head + LONGEST_SIGNATURE)].rstrip(),
        start=start,
        end=end,
        head=head,
        body=body_start,
        start_line=whole_line,
        end_line=whole.end_point.row - (whole.end_point.column == 0 and end > start),
        body_line=first_line + text[head:body_start].rstrip().count("\n") + 1,
    )


@cache
def _queries(grammar: Grammar) -> _Queries | None:
    language = load(grammar)
    if language is None:
        return None
    # A newer wheel of a grammar may have renamed a node: then only its definitions are lost.
    kinds = [kind for kind in grammar.definitions if language.id_for_node_kind(kind, True) is not None]
    if not kinds:
        return None
    anywhere = [f"({kind}) @d" for kind in kinds if kind not in VARIABLES]
    top = "\n".join(grammar.top_places)
    try:
        return Query(language, "\n".join([*anywhere, *grammar.places])), Query(language, top) if top else None
    except QueryError:
        return Query(language, "\n".join(anywhere)), None


def _name(node: Node) -> Node | None:
    """The node that holds the name."""
    if node.type == "assignment":
        left = node.child_by_field_name("left")
        return left if left is not None and left.type == "identifier" else None
    if node.type == "impl_item":
        return node.child_by_field_name("type")
    name = node.child_by_field_name("name")
    if name is not None:
        return name
    declarator = node.child_by_field_name("declarator")
    for _ in range(_DEEPEST_DECLARATOR):
        if declarator is None or declarator.child_count == 0 or declarator.type == "qualified_identifier":
            break
        last = declarator.named_child(declarator.named_child_count - 1) if declarator.named_child_count else None
        declarator = declarator.child_by_field_name("declarator") or last
    return declarator


def _body(node: Node) -> Node | None:
    """The node of the body: of a function, a class, or of the function that a variable holds."""
    if node.type in {"assignment", "variable_declarator"}:
        value = node.child_by_field_name("value" if node.type == "variable_declarator" else "right")
        if value is None or value.type not in CALLABLE_VALUES:
            return None
        return value.child_by_field_name("body") or value
    if node.type == "type_spec":
        kind = node.child_by_field_name("type")
        return kind if kind is not None and kind.type in {"struct_type", "interface_type"} else None
    return node.child_by_field_name("body")


def _before(body: Node) -> int:
    """Where the signature before a body ends; a comment in between is not part of it."""
    end, before = body.start_byte, body.prev_sibling
    # Each is looked for from the root.
    for _ in range(_COMMENTS):
        if before is None or not is_comment(before.type):
            break
        end, before = before.start_byte, before.prev_sibling
    return end


def _whole(node: Node, above: Iterable[Node]) -> Node:
    """The definition with its wrappers: decorators, `export`, `const`, `template`."""
    whole = node
    for parent in above:
        if parent.type not in _WRAPPERS:
            break
        # A declaration of several names does not belong to one of them.
        several = parent.type.endswith("_declaration") and parent.named_child_count > 1
        if several and parent.type != "template_declaration":
            break
        whole = parent
    return whole


# Where the syntax allows no cut within this many lines, empty lines do.
_LONG: Final = 60
_DEEPEST: Final = 4
# Nodes that are looked at, which takes some 10 ms; where there are more, empty lines allow cuts.
_MOST_NODES: Final = 4_000
_MOST_LINES: Final = 40_000
# A block begins with at most this indentation.
_SHALLOW: Final = 8
# Stands above a definition, and is part of it.
_ATTACHED: Final = frozenset({"attribute_item", "annotation", "decorator", "inner_attribute_item"})


def block_starts(tree: Tree, grammar: Grammar, text: str) -> tuple[int, ...]:
    """Lines that are good beginnings of an excerpt, ascending; the first is 0."""
    kinds = grammar.definitions
    starts = {0, *_starts(tree.root_node, kinds, 0, iter(range(_MOST_NODES)))}
    ordered = sorted(starts)
    last = text.count("\n")
    gaps = [(one, other) for one, other in zip(ordered, [*ordered[1:], last], strict=True) if other - one > _LONG]
    if not gaps:
        return tuple(ordered)
    by_lines = block_starts_by_lines(text)
    return tuple(sorted(starts.union(line for line in by_lines if any(a < line < b for a, b in gaps))))


def block_starts_by_lines(text: str) -> tuple[int, ...]:
    """The first line, and lines with little indentation that follow an empty line; of very many lines, the first."""
    found, empty = [0], False
    if text.count("\n") > _MOST_LINES:
        return (0,)
    for number, line in enumerate(split_lines(text)):
        bare = line.lstrip(" \t")
        if not bare or bare[0] in "\r\n":
            empty = True
            continue
        if empty and bare[0] not in ")]}" and len(line) - len(bare) <= _SHALLOW and number:
            found.append(number)
        empty = False
    return tuple(found)


def _starts(parent: Node, kinds: Mapping[str, str], depth: int, left: Iterator[int]) -> Iterator[int]:
    """The first lines of the blocks among a node's children, and of those among their members, `left` nodes at most."""
    before, single, attached = -2, False, -1
    cursor = parent.walk()
    more = cursor.goto_first_child()
    while more and next(left, None) is not None:
        node, more = cursor.node, cursor.goto_next_sibling()
        if node is None or not node.is_named:
            continue
        first, last = node.start_point.row, node.end_point.row
        kind = node.type
        if is_comment(kind) or kind in _ATTACHED:
            attached = first if attached < 0 or first > before + 1 else attached
            before = last
            continue
        start = attached if attached >= 0 and first <= before + 1 else first
        simple = first == last
        if not (simple and single and start <= before + 1):
            yield start
        if depth < _DEEPEST and not simple:
            body = _members(node, kinds)
            if body is not None:
                yield from _starts(body, kinds, depth + 1, left)
        before, single, attached = last, simple, -1


def _members(node: Node, kinds: Mapping[str, str]) -> Node | None:
    """The body of a definition with members, inside its wrappers."""
    inside: list[Node] = node.named_children if node.named_child_count <= _DEEPEST else []
    for inner in (node, *inside):
        if kinds.get(inner.type) in CONTAINERS:
            return inner.child_by_field_name("body")
    return None
