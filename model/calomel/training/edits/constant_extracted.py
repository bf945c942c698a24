"""A value gets a name, and the name goes wherever the value stood."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from calomel.training.edits.restored import restored
from calomel.training.edits.source import Source
from calomel.training.edits.statements import line_removal
from calomel.training.edits.story import Change, Story

_MOST: Final = 8
_LONGEST: Final = 60
_TRIES: Final = 12
_LITERALS: Final = frozenset({
    "integer", "float", "string", "number", "int_literal", "float_literal", "interpreted_string_literal",
    "raw_string_literal", "integer_literal", "string_literal", "rune_literal", "char_literal", "unary_operator",
    "unary_expression", "binary_operator", "binary_expression", "tuple", "regex", "template_string",
})  # fmt: skip
_UPPER: Final = re.compile(r"_?[A-Z][A-Z0-9_]{2,}")
# Where a name cannot be replaced by its value.
_FIXED: Final = frozenset({
    "export_specifier", "import_specifier", "attribute", "member_expression", "type_query", "scoped_identifier",
    "selector_expression", "field_expression", "use_list", "use_declaration", "call", "call_expression",
    "shorthand_field_initializer", "assignment_expression", "augmented_assignment", "aliased_import", "dotted_name",
    "global_statement", "const_spec", "var_spec", "named_type", "array_type", "reference_expression",
})  # fmt: skip
# What keeps a value apart from what stands around it.
_APART: Final = frozenset({"argument_list", "arguments", "assignment", "keyword_argument", "pair", "return_statement"})


def constant_extracted(source: Source, rng: random.Random) -> Story | None:
    """The definition of a constant is added, then its uses. Python, TypeScript, JavaScript, Go, Rust."""
    found = list(_constants(source))
    for whole, name, value in rng.sample(found, min(_TRIES, len(found))):
        uses = [node for node in source.identifiers(source.slice(name)) if node != name]
        if not 0 < len(uses) <= _MOST or not all(_replaceable(node) for node in uses):
            continue
        if len(re.findall(rf"\b{source.slice(name)}\b", source.text)) != len(uses) + 1:
            continue
        removals = [line_removal(source, *source.span(whole))]
        removals += [Change(*source.span(node), _literal(source, value, node)) for node in uses]
        story = restored("constant_extracted", source, removals)
        if story is not None:
            return story
    return None


def _constants(source: Source) -> Iterator[tuple[Node, Node, Node]]:
    """Constants with a literal value on one line: the whole definition, the name, the value."""
    for node in source.walk("assignment", "lexical_declaration", "const_spec", "const_item", "static_item"):
        definition = _definition(source, node)
        if definition is None:
            continue
        whole, name, value = definition
        written = source.slice(value)
        if value.type not in _LITERALS or "iota" in written or len(written) > _LONGEST or "\n" in source.slice(whole):
            continue
        if any(value.start_byte <= each.start_byte < value.end_byte for each in source.identifiers()):
            continue
        start, end = source.span(whole)
        tail = source.text[end : source.text.find("\n", end)]
        if not source.text[source.line_start(start) : start].strip() and tail.strip() in {"", ";"}:
            yield whole, name, value


def _definition(source: Source, node: Node) -> tuple[Node, Node, Node] | None:
    """A definition of one constant, with its name and value."""
    whole, holder = node, node
    if node.type == "assignment":
        if node.parent is None or node.parent.parent != source.root:
            return None
        whole = node.parent
    elif node.type == "lexical_declaration":
        if len(node.named_children) != 1 or not source.slice(node).startswith("const"):
            return None
        holder = node.named_children[0]
    elif node.type == "const_spec" and node.parent is not None and len(node.parent.named_children) == 1:
        whole = node.parent
    name = holder.child_by_field_name("left") or holder.child_by_field_name("name")
    value = holder.child_by_field_name("right") or holder.child_by_field_name("value")
    if value is not None and value.type == "expression_list" and len(value.named_children) == 1:
        value = value.named_children[0]
    if name is None or value is None or name.type != "identifier":
        return None
    if source.language == "python" and not _UPPER.fullmatch(source.slice(name)):
        return None
    return whole, name, value


def _literal(source: Source, value: Node, use: Node) -> str:
    """How the value is written where the name stands."""
    written = source.slice(value)
    apart = use.parent is not None and use.parent.type in _APART
    return f"({written})" if value.type.startswith("binary") and not apart else written


def _replaceable(node: Node) -> bool:
    parent = node.parent
    if parent is None or parent.type in _FIXED or node.type != "identifier":
        return False
    if parent.type in {"keyword_argument", "assignment", "pair", "variable_declarator", "default_parameter"}:
        return node in (parent.child_by_field_name("value"), parent.child_by_field_name("right"))
    return True
