"""An enumeration gets a variant more, and the code that tells variants apart handles it."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from calomel.training.edits.restored import restored
from calomel.training.edits.source import Source
from calomel.training.edits.story import Story
from calomel.training.edits.units import item_removal, unit_changes, unit_of

_MOST_USES: Final = 9
_TRIES: Final = 15
# From a word to what it decides: a comparison, a list of expressions, a literal.
_DEPTH: Final = 3
_ENUM_BASE: Final = re.compile(r"\b(?:\w*Enum|\w*Flag|\w*Choices)\b")
_PLAIN: Final = re.compile(r"[A-Za-z][\w.-]{1,30}")
# Where words are listed, and where each gets what it needs.
_LISTED: Final = frozenset({
    "list", "set", "tuple", "array", "literal_type", "literal_element", "array_expression", "pair",
})  # fmt: skip
_HANDLERS: Final = frozenset({
    "elif_clause", "if_statement", "switch_case", "expression_case", "case_clause", "pair", "keyed_element",
    "match_arm",
})  # fmt: skip
_CONSTANT: Final = re.compile(r"[A-Z]\w+")


def variant_added(source: Source, rng: random.Random) -> Story | None:
    """The variant first, then its handlers, top to bottom. Python, TypeScript, JavaScript, Go, Rust."""
    found = list(_variants(source))
    counts = Counter(source.slice(node) for node, _ in found)
    found = [each for each in found if counts[source.slice(each[0])] == 1]
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
    yield from _words(source)
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
                yield left, source.identifiers(source.slice(left))


def _script(source: Source) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    for body in source.walk("enum_body"):
        for child in body.named_children:
            name = child.child_by_field_name("name") or child
            if name.type == "property_identifier":
                yield name, source.identifiers(source.slice(name))
    for node in source.walk("object"):
        pairs = [child for child in node.named_children if child.type == "pair"]
        keys = [pair.child_by_field_name("key") for pair in pairs]
        if len(keys) > 2 and all(key is not None and _CONSTANT.fullmatch(source.slice(key)) for key in keys):  # noqa: PLR2004
            yield from ((key, source.identifiers(source.slice(key))) for key in keys if key is not None)


def _words(source: Source) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Words in quotes that are listed first and told apart later."""
    strings: defaultdict[str, list[Node]] = defaultdict(list)
    for node in source.walk("string", "interpreted_string_literal", "string_literal"):
        word = source.slice(node).strip("'\"")
        if _PLAIN.fullmatch(word):
            strings[word].append(node)
    for nodes in strings.values():
        first = nodes[0].parent
        if (
            first is not None
            and first.type in _LISTED
            and not _is_value(nodes[0])
            and any(_tells_apart(node) for node in nodes[1:])
        ):
            yield nodes[0], tuple(nodes)


def _tells_apart(node: Node) -> bool:
    if _is_value(node):
        return False
    at: Node | None = node.parent
    for _ in range(_DEPTH):
        if at is None or at.type in _HANDLERS:
            break
        at = at.parent
    return at is not None and at.type in _HANDLERS


def _is_value(node: Node) -> bool:
    """Whether a word is what a key stands for."""
    return node.parent is not None and node == node.parent.child_by_field_name("value")
