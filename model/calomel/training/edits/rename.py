"""A name changed: first the definition, then every use that means the same thing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from tree_sitter import Node

from calomel.prompts.parts import Edit
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
from calomel.training.edits.naming import Role, new_name
from calomel.training.edits.source import Source
from calomel.training.edits.story import REACH, Story, story_of

Place = Literal["use", "member", "key", "keyword", "declared", "outside"]
_PLACES: Final[tuple[Place, ...]] = ("keyword", "outside", "key", "declared")


def place_of(source: Source, node: Node) -> Place:
    """A use, after a dot, a key of a literal, the keyword of an argument, a new declaration, or from another file."""
    if is_member(node):
        return "member"
    return next((place for place in _PLACES if node in source.captured(place)), "use")


def is_shorthand(node: Node) -> bool:
    """Whether a name is the key of a literal and its value at once."""
    short = ("shorthand_property_identifier", "shorthand_field_identifier")
    return node.type in short or (node.parent is not None and node.parent.type == "shorthand_field_initializer")


# Nobody renames more places than this by hand.
_MOST_USES: Final = 24
_TRIES: Final = 9
_SHORT_PATTERN: Final = "shorthand_property_identifier_pattern"
_FIELD_NAMES: Final = ("property_identifier", "field_identifier")
_UNCLEAR: Final = (_SHORT_PATTERN, *_FIELD_NAMES)
# Prefixes of names that tools rely on.
_FIXED: Final = ("__", "test_", "Test", "Benchmark", "Example")


@dataclass(frozen=True, slots=True)
class _Name:
    """A name where it is defined, the function that it is local to, and whether other places use it after a dot."""

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


def _targets(source: Source, rng: random.Random) -> Iterator[_Target]:
    """Names with few uses near each other, a few of one kind, then of the next."""
    sorts, weights = _defined(source), dict(_WEIGHTS)
    while weights:
        sort = rng.choices(list(weights), list(weights.values()))[0]
        del weights[sort]
        names = rng.sample(sorts[sort], len(sorts[sort]))
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


def _edits(source: Source, target: _Target, new: str) -> list[Edit]:
    """The definition first, then every use, from top to bottom."""
    name, uses = target
    old = source.slice(name.node)
    changes = [Edit(*source.span(node), f"{old}: {new}" if is_shorthand(node) else new) for node in (name.node, *uses)]
    return [changes[0], *sorted(changes[1:], key=lambda change: change.start)]


_WEIGHTS: Final = {"function": 4, "value": 5, "type": 2, "field": 3}


def _defined(source: Source) -> dict[str, list[_Name]]:
    """The names that a file defines, by kind: parameters and constants are values."""
    parameters = [
        _Name(each.name_node, "value", function)
        for function in functions(source)
        for each in function.plain
        if each.name_node is not None
    ]
    fields = {source.slice(node): node for node in reversed(source.captured("field"))}
    return {
        "function": list(_functions(source)),
        "value": parameters + [_Name(node, "value", enclosing(source, node)) for node in source.captured("value")],
        "type": [_Name(node, "type") for node in source.captured("type")],
        "field": [_Name(node, "value", member=True) for node in fields.values()],
    }


def _functions(source: Source) -> Iterator[_Name]:
    for function in functions(source):
        name, called = function.name, calls(source).get(function.name, ())
        fixed = name in COMMON or name in ("main", "constructor") or name.startswith(_FIXED)
        if function.name_node is None or fixed or not called or is_promised(function):
            continue
        if not function.method or all(is_own(source, call) for call in called if is_member(call.name)):
            yield _Name(function.name_node, "function", member=function.method and source.language != "rust")


def _uses(source: Source, name: _Name) -> tuple[Node, ...]:
    """Every other place of a name; none if it may mean something else as well."""
    text = source.slice(name.node)
    functions_so_called = [each for each in functions(source) if each.name == text]
    others = [(node, place_of(source, node)) for node in source.identifiers(text) if node != name.node]
    if name.scope is not None:
        return () if functions_so_called else _uses_in(source, name, name.scope, others)
    if not name.member:
        known = {"use", "member"} if source.language == "rust" else {"use"}
        alone = len(functions_so_called) == (name.role == "function") or source.language == "rust"
        return tuple(node for node, _ in others) if alone and {role for _, role in others} <= known else ()
    if text in COMMON or len(functions_so_called) != (name.role == "function"):
        return ()
    keys = ("member",) if source.language == "python" else ("member", "key")
    left = [(node, role) for node, role in others if role not in keys]
    unclear = any(role == "outside" or is_shorthand(node) or node.type in _UNCLEAR for node, role in left)
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
