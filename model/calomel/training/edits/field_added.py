"""A class or struct gets a field more, and its constructor and its other uses follow."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from calomel.training.edits.restored import restored
from calomel.training.edits.source import Source
from calomel.training.edits.story import Story
from calomel.training.edits.units import item_removal, unit_changes, unit_of

_MOST_USES: Final = 9
_TRIES: Final = 15


def field_added(source: Source, rng: random.Random) -> Story | None:
    """The field first, then what sets and uses it, top to bottom. Python, TypeScript, JavaScript, Go, Rust."""
    found = [
        node
        for node in _fields(source)
        if 2 <= source.names.get(source.slice(node), 0) <= _MOST_USES + 1  # noqa: PLR2004 (one is the definition)
    ]
    # A name that several have is no field more of one.
    counts = Counter(map(source.slice, found))
    found = [node for node in found if counts[source.slice(node)] == 1]
    for node in rng.sample(found, min(_TRIES, len(found))):
        name = source.slice(node)
        uses = source.identifiers(name)
        unit = unit_of(source, node, name)
        first = None if unit is None else item_removal(source, unit)
        changes = None if first is None else unit_changes(source, uses, name)
        if first is None or changes is None or first not in changes or len(changes) == 1:
            continue
        changes.remove(first)
        story = restored("field_added", source, [first, *changes])
        if story is not None:
            return story
    return None


def _fields(source: Source) -> Iterator[Node]:
    """The names of fields where they are defined."""
    for node in source.walk("field_declaration", "public_field_definition", "property_signature", "field_definition"):
        name = node.child_by_field_name("name") or node.child_by_field_name("property")
        if name is not None and len(node.children_by_field_name("name")) <= 1:
            yield name
    if source.language == "python":
        yield from _python_fields(source)
    elif source.language in {"typescript", "javascript"}:
        yield from _set_on_this(source)


def _python_fields(source: Source) -> Iterator[Node]:
    seen = set()
    for node in source.walk("assignment"):
        left = node.child_by_field_name("left")
        if left is None:
            continue
        block = None if node.parent is None else node.parent.parent
        in_class = block is not None and block.parent is not None and block.parent.type == "class_definition"
        if left.type == "identifier" and in_class and node.child_by_field_name("type") is not None:
            yield left
        elif left.type == "attribute":
            owner, name = left.child_by_field_name("object"), left.child_by_field_name("attribute")
            if owner is not None and name is not None and source.slice(owner) == "self":
                key = source.slice(name)
                if key not in seen:
                    seen.add(key)
                    yield name


def _set_on_this(source: Source) -> Iterator[Node]:
    seen = set()
    for node in source.walk("assignment_expression"):
        left = node.child_by_field_name("left")
        if left is None or left.type != "member_expression":
            continue
        owner, name = left.child_by_field_name("object"), left.child_by_field_name("property")
        if owner is not None and name is not None and source.slice(owner) == "this":
            key = source.slice(name)
            if key not in seen:
                seen.add(key)
                yield name
