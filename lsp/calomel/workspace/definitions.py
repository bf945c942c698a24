"""The definitions in a syntax tree: functions, classes, types, and the names of a file's top."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from tree_sitter import Language, Node, Query, QueryCursor, QueryError, Tree

from calomel.workspace.languages import Grammar, load
from calomel.workspace.node_kinds import CALLABLE_VALUES, DEFINITIONS, PLACES, VARIABLES, WITH_BODY_ONLY, is_comment
from calomel.workspace.scope import OutlineItem, Scope

# Generated tables can hold more; nobody reads them.
_MOST: Final = 5_000
# What belongs to the definition that it encloses.
_WRAPPERS: Final = frozenset({
    "const_declaration", "decorated_definition", "export_statement", "lexical_declaration", "template_declaration",
    "type_declaration", "var_declaration", "variable_declaration",
})  # fmt: skip
# C: from the declaration of a function down to its name.
_DEEPEST_DECLARATOR: Final = 6
# A signature is meant to be read; what is longer is data.
LONGEST_SIGNATURE: Final = 600


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition.

    Attributes:
        kind, name: as in `Scope`.
        start, end: offsets of the whole, with decorators.
        head, body: offsets of the signature's start and of the body's; `body` is `end` without a body.
        start_line, end_line: of the whole.
        body_line: first line behind the signature.
        depth: how many definitions enclose it.
    """

    kind: str
    name: str
    start: int
    end: int
    head: int
    body: int
    start_line: int
    end_line: int
    body_line: int
    depth: int

    def signature(self, text: str) -> str:
        """What introduces the body."""
        return text[self.head : min(self.body, self.head + LONGEST_SIGNATURE)].rstrip()

    def scope(self, text: str) -> Scope:
        """As a scope of `text`."""
        return Scope(self.kind, self.name, self.signature(text), self.start, self.end)

    def item(self, text: str) -> OutlineItem:
        """As an item of the outline of `text`."""
        return OutlineItem(
            self.kind, self.name, self.signature(text), self.start_line, self.end_line, self.body_line, self.depth
        )


def definitions_in(tree: Tree, grammar: Grammar, text: str) -> tuple[Definition, ...]:
    """All definitions in the order of the file, outer before inner. `text` is what the tree was parsed from."""
    query = _query(grammar)
    if query is None:
        return ()
    nodes = QueryCursor(query).captures(tree.root_node).get("d", [])
    nodes.sort(key=lambda node: (node.start_byte, -node.end_byte))
    found: list[Definition] = []
    ends: list[int] = []
    for node in nodes[:_MOST]:
        definition = definition_at(node, grammar, text)
        if definition is None:
            continue
        while ends and ends[-1] <= definition.start:
            ends.pop()
        found.append(_nested(definition, len(ends)))
        ends.append(definition.end)
    return tuple(found)


def enclosing(tree: Tree, grammar: Grammar, text: str, offset: int) -> tuple[Definition, ...]:
    """The definitions around the character at `offset`, the innermost last."""
    kinds = DEFINITIONS[grammar.name]
    cursor = tree.root_node.walk()
    found: list[Definition] = []
    while cursor.goto_first_child_for_byte(2 * offset) is not None:
        node = cursor.node
        if node is None or node.start_byte > 2 * offset:
            break
        if node.type in kinds:
            definition = definition_at(node, grammar, text)
            if definition is not None and (definition.body < definition.end or node.type not in VARIABLES):
                found.append(_nested(definition, len(found)))
    return tuple(found)


def definition_at(node: Node, grammar: Grammar, text: str) -> Definition | None:
    """What a node defines; its depth is left at 0."""
    name = _name(node)
    if name is None:
        return None
    body = _body(node)
    if node.type in WITH_BODY_ONLY and body is None:
        return None
    kind = DEFINITIONS[grammar.name][node.type]
    if kind == "variable" and body is not None:
        kind = "class" if body.type.startswith("class") else "function"
    whole = _whole(node)
    head_end = node.end_byte if body is None else _before(body)
    first_line, whole_line = node.start_point.row, whole.start_point.row
    start, end = whole.start_byte // 2, whole.end_byte // 2
    head = start if whole_line == first_line else node.start_byte // 2
    signature = text[head : head_end // 2].rstrip()
    return Definition(
        kind=kind,
        name=text[name.start_byte // 2 : name.end_byte // 2],
        start=start,
        end=end,
        head=head,
        body=head_end // 2,
        start_line=whole_line,
        end_line=whole.end_point.row - (whole.end_point.column == 0 and end > start),
        body_line=first_line + signature.count("\n") + 1,
        depth=0,
    )


def in_error(tree: Tree, offset: int) -> bool:
    """Whether the tree could not make sense of what surrounds the character at `offset`."""
    if not tree.root_node.has_error:
        return False
    node = tree.root_node.descendant_for_byte_range(2 * offset, 2 * offset + 2)
    while node is not None and not node.is_error:
        node = node.parent
    return node is not None


@cache
def _query(grammar: Grammar) -> Query | None:
    language = load(grammar)
    kinds = [] if language is None else [kind for kind in DEFINITIONS[grammar.name] if _known(language, kind)]
    if language is None or not kinds:
        return None
    anywhere = [f"({kind}) @d" for kind in kinds if kind not in VARIABLES]
    try:
        return Query(language, "\n".join([*anywhere, *PLACES.get(grammar.name, ())]))
    except QueryError:
        return Query(language, "\n".join(anywhere))


def _known(language: Language, kind: str) -> bool:
    # A newer wheel of a grammar may have renamed a node: its definitions are lost then, and nothing else.
    return language.id_for_node_kind(kind, True) is not None


def _nested(definition: Definition, depth: int) -> Definition:
    if depth == 0:
        return definition
    return Definition(
        definition.kind, definition.name, definition.start, definition.end, definition.head, definition.body,
        definition.start_line, definition.end_line, definition.body_line, depth,
    )  # fmt: skip


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
        declarator = declarator.child_by_field_name("declarator") or _last_named(declarator)
    return declarator


def _last_named(node: Node) -> Node | None:
    return node.named_child(node.named_child_count - 1) if node.named_child_count else None


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
    """Where the signature before a body ends; a remark in between is no part of it."""
    end, before = body.start_byte, body.prev_sibling
    while before is not None and is_comment(before.type):
        end, before = before.start_byte, before.prev_sibling
    return end


def _whole(node: Node) -> Node:
    """The definition with what wraps it: decorators, `export`, `const`, `template`."""
    whole, parent = node, node.parent
    while parent is not None and parent.type in _WRAPPERS:
        # A list of several names in brackets is no whole.
        if parent.type.endswith("_declaration") and parent.named_child_count > 1 and not _templated(parent):
            break
        whole, parent = parent, parent.parent
    return whole


def _templated(node: Node) -> bool:
    return node.type == "template_declaration"
