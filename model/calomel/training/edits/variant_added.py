"""An enumeration gets a variant more, and the code that tells variants apart handles it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from calomel.training.edits.restored import restored
from calomel.training.edits.source import Source
from calomel.training.edits.story import Story
from calomel.training.edits.units import item_removal, unit_changes, unit_of

_MOST_USES: Final = 9
_TRIES: Final = 15
_ENUM_BASE: Final = re.compile(r"\b(?:\w*Enum|\w*Flag|\w*Choices)\b")
_CONSTANT: Final = re.compile(r"[A-Z]\w+")


def variant_added(source: Source, rng: random.Random) -> Story | None:
    """The variant first, then its handlers, top to bottom. Python, TypeScript, JavaScript, Go, Rust."""
    found = list(_variants(source))
    for node, uses in rng.sample(found, min(_TRIES, len(found))):
        name = source.slice(node)
        if not 2 <= len(uses) <= _MOST_USES + 1:  # noqa: PLR2004 (one is the definition)
            continue
        unit = unit_of(source, node, name) or node
        first = item_removal(source, unit if unit.type != "block" else node)
        changes = None if first is None else unit_changes(source, [use for use in uses if use != node], name)
        if first is None or not changes:
            continue
        changes = [change for change in changes if not first.start <= change.start < first.end]
        story = restored("variant_added", source, [first, *changes]) if changes else None
        if story is not None:
            return story
    return None


def _variants(source: Source) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """The names of variants where they are defined, and everywhere."""
    if source.language == "rust":
        for node in source.walk("enum_variant"):
            name = node.child_by_field_name("name")
            if name is not None:
                yield name, source.identifiers(source.slice(name))
    elif source.language == "go":
        yield from _go(source)
    elif source.language == "python":
        yield from _python(source)
    else:
        yield from _script(source)


def _go(source: Source) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    for node in source.walk("const_declaration"):
        specs = [child for child in node.named_children if child.type == "const_spec"]
        if len(specs) < 3:  # noqa: PLR2004 (fewer tell nothing apart)
            continue
        for spec in specs:
            name = spec.child_by_field_name("name")
            if name is not None and "iota" not in source.slice(spec):
                yield name, source.identifiers(source.slice(name))


def _python(source: Source) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    for node in source.walk("class_definition"):
        bases, body = node.child_by_field_name("superclasses"), node.child_by_field_name("body")
        if bases is None or body is None or not _ENUM_BASE.search(source.slice(bases)):
            continue
        for statement in body.named_children:
            inner = statement.named_children[0] if statement.named_children else None
            left = None if inner is None or inner.type != "assignment" else inner.child_by_field_name("left")
            if left is not None and left.type == "identifier":
                yield statement, source.identifiers(source.slice(left))


def _script(source: Source) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    for body in source.walk("enum_body"):
        for child in body.named_children:
            name = child.child_by_field_name("name") or child
            if name.type == "property_identifier":
                yield name, source.identifiers(source.slice(name))
    strings: dict[str, list[Node]] = {}
    for node in source.walk("string"):
        strings.setdefault(source.slice(node).strip("'\""), []).append(node)
    for union in source.walk("union_type"):
        for child in union.named_children:
            inner = child.named_children[0] if child.type == "literal_type" and child.named_children else None
            if inner is not None and inner.type == "string":
                yield inner, tuple(strings[source.slice(inner).strip("'\"")])
    for node in source.walk("object"):
        pairs = [child for child in node.named_children if child.type == "pair"]
        keys = [pair.child_by_field_name("key") for pair in pairs]
        if len(keys) > 2 and all(key is not None and _CONSTANT.fullmatch(source.slice(key)) for key in keys):  # noqa: PLR2004
            yield from ((key, source.identifiers(source.slice(key))) for key in keys if key is not None)
