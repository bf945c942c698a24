"""A name changed, or spelt right: the definition first, then every use of the name that means the same thing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from tree_sitter import Node

from calomel.training.edits.functions import (
    COMMON,
    Function,
    calls,
    enclosing,
    functions,
    is_member,
    is_own,
    is_promised,
)
from calomel.training.edits.naming import Role, misspelt, new_name
from calomel.training.edits.source import Source
from calomel.training.edits.story import REACH, Change, Story, story_of, taken_back

Place = Literal["use", "member", "key", "keyword", "declared", "outside"]
_OUTSIDE: Final = frozenset({
    "import_specifier", "import_clause", "namespace_import", "aliased_import", "import_spec", "use_list",
    "use_as_clause", "use_declaration", "global_statement", "nonlocal_statement", "export_specifier",
})  # fmt: skip
_PAIRS: Final = frozenset({"pair", "pair_pattern", "field_initializer", "field_pattern"})
_DECLARED_IN: Final = frozenset({
    "required_parameter", "optional_parameter", "typed_parameter", "default_parameter", "parameter",
    "parameter_declaration", "parameters", "formal_parameters", "lambda_parameters",
})  # fmt: skip
_DECLARING: Final = frozenset({"variable_declarator", "let_declaration", "named_expression"})


def role_of(node: Node) -> Place:
    """A use, behind a dot, a key of a literal, the keyword of an argument, declared anew, or from another file."""
    parent = node.parent
    if parent is None:
        return "use"
    if is_member(node):
        return "member"
    if parent.type == "keyword_argument" and parent.child_by_field_name("name") == node:
        return "keyword"
    if _is_outside(parent):
        return "outside"
    if _is_key(node, parent):
        return "key"
    return "declared" if _is_declared(node, parent) else "use"


def is_shorthand(node: Node) -> bool:
    """Whether a name is the key of a literal and its value at once."""
    short = ("shorthand_property_identifier", "shorthand_field_identifier")
    return node.type in short or (node.parent is not None and node.parent.type == "shorthand_field_initializer")


def _is_outside(parent: Node) -> bool:
    above = parent.parent
    return parent.type in _OUTSIDE or (parent.type == "dotted_name" and above is not None and "import" in above.type)


def _is_key(node: Node, parent: Node) -> bool:
    if parent.type in _PAIRS:
        return parent.children[0] == node
    above = parent.parent
    return (
        parent.type == "literal_element"
        and above is not None
        and above.type == "keyed_element"
        and above.children[0] == parent
    )


def _is_declared(node: Node, parent: Node) -> bool:
    if node.type == "shorthand_property_identifier_pattern":
        return True
    if parent.type in _DECLARED_IN:
        return node.type == "identifier" and parent.child_by_field_name("value") != node
    return parent.type in _DECLARING and parent.children[0] == node


# More places than this nobody renames by hand.
_MOST_USES: Final = 24
_TRIES: Final = 9
_LOCAL: Final = {
    "python": (("assignment", "left"), ("for_statement", "left"), ("named_expression", "name")),
    "typescript": (("variable_declarator", "name"),),
    "javascript": (("variable_declarator", "name"),),
    "go": (("short_var_declaration", "left"), ("var_spec", "name"), ("range_clause", "left")),
    "rust": (("let_declaration", "pattern"), ("for_expression", "pattern")),
}
_TYPES: Final = (
    "class_definition", "class_declaration", "abstract_class_declaration", "interface_declaration",
    "type_alias_declaration", "enum_declaration", "type_spec", "struct_item", "enum_item", "trait_item", "type_item",
)  # fmt: skip
_FIELDS: Final = {
    "typescript": ("public_field_definition", "property_signature"),
    "javascript": ("field_definition",),
    "go": ("field_declaration",),
    "rust": ("field_declaration",),
}
_SHORT_PATTERN: Final = "shorthand_property_identifier_pattern"
_FIELD_NAMES: Final = ("property_identifier", "field_identifier")
_UNCLEAR: Final = (_SHORT_PATTERN, *_FIELD_NAMES)
_CONSTANTS: Final = ("const_item", "static_item", "const_spec", "assignment", "variable_declarator", "var_spec")
_LISTS: Final = ("expression_list", "tuple_pattern", "pattern_list")
# What tools call by its name.
_FIXED: Final = ("__", "test_", "Test", "Benchmark", "Example")


@dataclass(frozen=True, slots=True)
class _Name:
    """A name where it is defined, the function that it is local to, and whether it stands behind a dot elsewhere."""

    node: Node
    role: Role
    scope: Function | None = None
    member: bool = False


# Where a name is defined, and every place that has to follow.
_Target = tuple[_Name, tuple[Node, ...]]


def rename(source: Source, rng: random.Random) -> Story | None:
    """Rename a function, a parameter, a local, a constant, a type or a field.

    Languages: Python, TypeScript, JavaScript, Go, Rust.
    """
    for target in _targets(source, rng):
        new = _other_name(source, rng, target[0])
        story = None if new is None else story_of("rename", source, _edits(source, target, new))
        if story is not None:
            return story
    return None


def typo_fixed(source: Source, rng: random.Random) -> Story | None:
    """Put a misspelt name right, where it is defined and wherever it is used; languages as for `rename`."""
    for target in _targets(source, rng):
        wrong = misspelt(source.slice(target[0].node), rng)
        if wrong is None or wrong.lower() in source.text.lower():
            continue
        story = story_of("typo_fixed", source, _edits(source, target, wrong))
        if story is not None:
            return taken_back("typo_fixed", source, story)
    return None


def _targets(source: Source, rng: random.Random) -> Iterator[_Target]:
    """Names with few uses near each other, some of one sort, then of the next."""
    sorts, weights = [_functions, _locals, _types, _fields], [4, 5, 2, 3]
    while sorts:
        sort = rng.choices(sorts, weights)[0]
        place = sorts.index(sort)
        del sorts[place], weights[place]
        names = list(sort(source))
        rng.shuffle(names)
        targets = ((name, uses) for name in names if (uses := _uses(source, name)))
        for name, uses in islice(targets, _TRIES):
            nodes = (name.node, *uses)
            reach = max(node.end_byte for node in nodes) - min(node.start_byte for node in nodes)
            if len(nodes) <= _MOST_USES and reach <= REACH:
                yield name, uses


def _other_name(source: Source, rng: random.Random, name: _Name) -> str | None:
    old = source.slice(name.node)
    camel = source.language not in ("python", "rust")
    start, end = source.span(name.node)
    near = source.text[source.line_start(start) : start] + source.text[end : end + 60].split("\n")[0]
    new = new_name(old, rng, source.names, language=source.language, role=name.role, camel=camel, near=near)
    if new is not None and source.language == "go" and old[:1].isupper() != new[:1].isupper():
        return None
    return new


def _edits(source: Source, target: _Target, new: str) -> list[Change]:
    """The definition first, then every use, from top to bottom."""
    name, uses = target
    old = source.slice(name.node)
    changes = [
        Change(*source.span(node), f"{old}: {new}" if is_shorthand(node) else new) for node in (name.node, *uses)
    ]
    return [changes[0], *sorted(changes[1:], key=lambda change: change.start)]


def _functions(source: Source) -> Iterator[_Name]:
    for function in functions(source):
        name, called = function.name, calls(source).get(function.name, ())
        fixed = name in COMMON or name in ("main", "constructor") or name.startswith(_FIXED)
        if function.name_node is None or fixed or not called or is_promised(function):
            continue
        if not function.method or all(is_own(source, call) for call in called if is_member(call.name)):
            yield _Name(function.name_node, "function", member=function.method and source.language != "rust")


def _locals(source: Source) -> Iterator[_Name]:
    """Parameters, and names given inside of functions."""
    for function in functions(source):
        yield from (_Name(each.name_node, "value", function) for each in function.plain if each.name_node is not None)
    for kind, field in _LOCAL[source.language]:
        for node in source.walk(kind):
            function_around = enclosing(source, node)
            for left in node.children_by_field_name(field) if function_around is not None else ():
                names = left.named_children if left.type in _LISTS else [left]
                yield from (_Name(name, "value", function_around) for name in names if name.type == "identifier")


def _types(source: Source) -> Iterator[_Name]:
    """Types and constants of the file."""
    for node in source.walk(*_TYPES):
        named = node.child_by_field_name("name")
        if named is not None:
            yield _Name(named, "type")
    for node in source.walk(*_CONSTANTS):
        left = node.child_by_field_name("name") or node.child_by_field_name("left")
        if left is not None and left.type == "identifier" and enclosing(source, node) is None:
            yield _Name(left, "value")


def _fields(source: Source) -> Iterator[_Name]:
    for node in source.walk(*_FIELDS.get(source.language, ())):
        names = node.children_by_field_name("name") or node.children_by_field_name("property")
        yield from (_Name(name, "value", member=True) for name in names if name.type in _FIELD_NAMES)
    seen: set[str] = set()
    for node in source.walk("attribute") if source.language == "python" else ():
        before, field = node.child_by_field_name("object"), node.child_by_field_name("attribute")
        left = node.parent is not None and node.parent.type == "assignment"
        if left and before is not None and field is not None and source.slice(before) == "self":
            if source.slice(field) not in seen:
                yield _Name(field, "value", member=True)
            seen.add(source.slice(field))


def _uses(source: Source, name: _Name) -> tuple[Node, ...]:
    """Every other place of a name; none where it may mean something else as well."""
    text = source.slice(name.node)
    functions_so_called = [each for each in functions(source) if each.name == text]
    others = [(node, role_of(node)) for node in source.identifiers(text) if node != name.node]
    if name.scope is not None:
        return () if functions_so_called else _uses_in(source, name, name.scope, others)
    if not name.member:
        known = {"use", "member"} if source.language == "rust" else {"use"}
        alone = len(functions_so_called) == (name.role == "function") or source.language == "rust"
        return tuple(node for node, _ in others) if alone and {role for _, role in others} <= known else ()
    if text in COMMON or len(functions_so_called) != (name.role == "function"):
        return ()
    keys = ("member",) if source.language == "python" else ("member", "key")
    left = [node for node, role in others if role not in keys]
    unclear = any(role_of(node) == "outside" or is_shorthand(node) or node.type in _UNCLEAR for node in left)
    followed = tuple(node for node, role in others if role in keys)
    return () if unclear or (left and name.role == "function") else followed


def _uses_in(source: Source, name: _Name, scope: Function, others: list[tuple[Node, Place]]) -> tuple[Node, ...]:
    """The places of a local name."""
    text = source.slice(name.node)
    if text in ("_", "self", "cls", "this") or text.startswith("__"):
        return ()
    inside = [each for each in others if scope.node.start_byte <= each[0].start_byte < scope.node.end_byte]
    uses = tuple(node for node, role in inside if role in ("use", "declared"))
    if any(role == "outside" or node.type == _SHORT_PATTERN for node, role in inside):
        return ()
    # Callers may name a parameter, and Rust's format strings a variable.
    named = any(role == "keyword" for node, role in others if (node, role) not in inside)
    if named or (source.language == "rust" and "{" + text in source.slice(scope.node)):
        return ()
    return () if any(node.start_byte < name.node.start_byte for node in uses) else uses
