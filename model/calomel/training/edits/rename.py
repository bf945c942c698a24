"""A rename: the definition first, then every use of the name that means the same thing."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from calomel.training.edits.calls import COMMON, calls, is_member, is_own, is_promised
from calomel.training.edits.functions import Function, functions
from calomel.training.edits.naming import Role, new_name
from calomel.training.edits.roles import is_shorthand, role_of
from calomel.training.edits.source import Source
from calomel.training.edits.story import REACH, Change, Story, story_of

# More places than this nobody renames by hand.
_MOST_USES: Final = 24
_TRIES: Final = 8
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
_GLOBAL: Final = frozenset({
    "module", "program", "source_file", "export_statement", "lexical_declaration", "variable_declaration",
    "expression_statement", "const_declaration", "var_declaration", "var_spec_list",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Target:
    """A name that can be changed: where it is defined, and every place that has to follow."""

    role: Role
    definition: Node
    uses: tuple[Node, ...]


def rename(source: Source, rng: random.Random) -> Story | None:
    """Rename a function, a parameter, a local, a constant, a type or a field.

    Languages: Python, TypeScript, JavaScript, Go, Rust.
    """
    makers: list[Callable[[Source, random.Random], Iterator[_Target]]] = [
        _of_functions,
        _of_locals,
        _of_types,
        _of_fields,
    ]
    weights = [4, 5, 2, 3]
    while makers:
        maker = rng.choices(makers, weights)[0]
        place = makers.index(maker)
        del makers[place], weights[place]
        for tried, target in enumerate(maker(source, rng)):
            story = _story(source, rng, target)
            if story is not None:
                return story
            if tried >= _TRIES:
                break
    return None


def _story(source: Source, rng: random.Random, target: _Target) -> Story | None:
    nodes = (target.definition, *target.uses)
    if not 2 <= len(nodes) <= _MOST_USES:  # noqa: PLR2004
        return None
    if max(node.end_byte for node in nodes) - min(node.start_byte for node in nodes) > REACH:
        return None
    old = source.slice(target.definition)
    camel = source.language not in ("python", "rust")
    start, end = source.span(target.definition)
    near = source.text[source.line_start(start) : start] + source.text[end : end + 60].split("\n")[0]
    new = new_name(old, rng, source.names, language=source.language, role=target.role, camel=camel, near=near)
    if new is None:
        return None
    if source.language == "go" and old[:1].isupper() != new[:1].isupper():
        return None
    edits = [_edit(source, node, old, new) for node in nodes]
    edits += _in_strings(source, nodes, old, new)
    definition, *uses = edits
    return story_of("rename", source, [definition, *sorted(uses, key=lambda edit: edit.start)])


def _edit(source: Source, node: Node, old: str, new: str) -> Change:
    start, end = source.span(node)
    if is_shorthand(node):
        return Change(start, end, f"{old}: {new}")
    return Change(start, end, new)


def _in_strings(source: Source, nodes: tuple[Node, ...], old: str, new: str) -> list[Change]:
    """What Rust's format strings say of a variable (`"{name}"`), between the first use and the last."""
    if source.language != "rust" or "{" + old not in source.text:
        return []
    found = []
    low, high = min(node.start_byte for node in nodes), max(node.end_byte for node in nodes)
    for node in source.walk("string_literal"):
        if low < node.start_byte < high + 200 and node.parent is not None and node.parent.type == "token_tree":
            start = source.offset(node.start_byte)
            for match in re.finditer(r"\{" + re.escape(old) + r"(?=[:}])", source.slice(node)):
                found.append(Change(start + match.start() + 1, start + match.end(), new))  # noqa: PERF401
    return found


def _of_functions(source: Source, rng: random.Random) -> Iterator[_Target]:
    found = list(functions(source))
    rng.shuffle(found)
    for function in found:
        name = function.name
        if is_promised(function) and len([each for each in functions(source) if each.name == name]) == 1:
            continue
        if function.name_node is None or name in COMMON or name.startswith("__") or name in ("main", "constructor"):
            continue
        if any(name.startswith(lead) for lead in ("test_", "Test", "Benchmark", "Example")):
            continue
        nodes = [node for node in source.identifiers(name) if node != function.name_node]
        definitions = {each.name_node.start_byte for each in functions(source) if each.name_node and each.name == name}
        if len(definitions) > 1 and not function.method:
            continue
        called = calls(source).get(name, ())
        if function.method and any(is_member(call.name) and not is_own(source, call) for call in called):
            continue
        if not called and len(definitions) < 2:  # noqa: PLR2004
            continue
        if any(role_of(node) in ("declared", "key", "keyword", "outside") for node in nodes):
            continue
        members = {is_member(node) or node.start_byte in definitions for node in nodes}
        # A method is always behind a dot, a function never: else the name means two things.
        if source.language != "rust" and members and members != {function.method}:
            continue
        yield _Target("function", function.name_node, tuple(nodes))


def _of_locals(source: Source, rng: random.Random) -> Iterator[_Target]:
    targets: list[tuple[Node, Function]] = []
    for function in functions(source):
        targets += [(each.name_node, function) for each in function.plain if each.name_node is not None]
    around = list(functions(source))
    for kind, field in _LOCAL[source.language]:
        for node in source.walk(kind):
            for left in node.children_by_field_name(field):
                names = [left] if left.type == "identifier" else left.named_children
                inner = _innermost(around, node)
                if inner is not None and left.type in (
                    "identifier",
                    "expression_list",
                    "tuple_pattern",
                    "pattern_list",
                ):
                    targets += [(name, inner) for name in names if name.type == "identifier"]
    rng.shuffle(targets)
    for definition, function in targets:
        target = _local(source, definition, function)
        if target is not None:
            yield target


def _innermost(around: list[Function], node: Node) -> Function | None:
    found = None
    for function in around:
        if function.node.start_byte > node.start_byte:
            break
        if function.node.end_byte >= node.end_byte:
            found = function
    return found


def _local(source: Source, definition: Node, function: Function) -> _Target | None:
    name = source.slice(definition)
    low, high = function.node.start_byte, function.node.end_byte
    if name in ("_", "self", "cls", "this") or name.startswith("__"):
        return None
    uses = []
    inner = [
        each for each in functions(source)
        if low < each.node.start_byte and each.node.end_byte <= high
        and any(parameter.name == name for parameter in each.parameters)
    ]  # fmt: skip
    if inner:
        return None
    for node in source.identifiers(name):
        if not low <= node.start_byte < high or node == definition:
            continue
        role = role_of(node)
        if (
            role == "outside"
            or node.type == _SHORT_PATTERN
            or (role != "member" and node.start_byte < definition.start_byte)
        ):
            return None
        if role in ("use", "declared"):
            uses.append(node)
    if any(each.name == name for each in functions(source)):
        return None
    if source.language == "python":
        uses += _keywords(source, definition, function, name)
    return _Target("value", definition, tuple(uses)) if uses else None


def _keywords(source: Source, definition: Node, function: Function, name: str) -> list[Node]:
    """Where callers give a parameter by its name."""
    if not any(each.name_node == definition for each in function.parameters):
        return []
    found = []
    called = function.owner if function.name == "__init__" else function.name
    for call in calls(source).get(called, ()):
        brackets = call.node.child_by_field_name("arguments")
        for argument in brackets.named_children if brackets is not None else ():
            key = argument.child_by_field_name("name") if argument.type == "keyword_argument" else None
            if key is not None and source.slice(key) == name:
                found.append(key)
    return found


def _of_types(source: Source, rng: random.Random) -> Iterator[_Target]:
    targets: list[tuple[Node, Role]] = [
        (named, "type") for node in source.walk(*_TYPES) if (named := node.child_by_field_name("name")) is not None
    ]
    constants = ("const_item", "static_item", "const_spec", "assignment", "variable_declarator", "var_spec")
    for node in source.walk(*constants):
        left = node.child_by_field_name("name") or node.child_by_field_name("left")
        if left is not None and left.type == "identifier" and _is_global(node):
            targets.append((left, "value"))
    rng.shuffle(targets)
    for definition, role in targets:
        name = source.slice(definition)
        uses = [node for node in source.identifiers(name) if node != definition]
        roles = {role_of(node) for node in uses}
        if roles <= {"use", "member"} and ("member" not in roles or source.language == "rust"):
            yield _Target(role, definition, tuple(uses))


def _is_global(node: Node) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.type not in _GLOBAL:
            return False
        parent = parent.parent
    return True


def _of_fields(source: Source, rng: random.Random) -> Iterator[_Target]:
    targets = []
    for node in source.walk(*_FIELDS.get(source.language, ())):
        names = node.children_by_field_name("name") or node.children_by_field_name("property")
        targets += [name for name in names if name.type in ("property_identifier", "field_identifier")]
    seen: set[str] = set()
    for node in source.walk("attribute") if source.language == "python" else ():
        before, field = node.child_by_field_name("object"), node.child_by_field_name("attribute")
        left = node.parent is not None and node.parent.type == "assignment"
        if left and before is not None and field is not None and source.slice(before) == "self":
            if source.slice(field) not in seen:
                targets.append(field)
            seen.add(source.slice(field))
    rng.shuffle(targets)
    for definition in targets:
        name = source.slice(definition)
        if name in COMMON or any(each.name == name for each in functions(source)):
            continue
        others = [node for node in source.identifiers(name) if node != definition]
        if any(_elsewhere(source, node) for node in others):
            continue
        uses = tuple(node for node in others if role_of(node) in ("member", "key"))
        if uses:
            yield _Target("value", definition, uses)


def _elsewhere(source: Source, node: Node) -> bool:
    """Whether a name of a field stands where it may be another one's, or cannot be followed."""
    role = role_of(node)
    if role == "member" or (role == "key" and source.language != "python"):
        return False
    return (
        role == "outside"
        or is_shorthand(node)
        or node.type in (_SHORT_PATTERN, "property_identifier", "field_identifier")
    )
