"""What a name is at its place in the tree."""

from __future__ import annotations

from typing import Final, Literal

from tree_sitter import Node

from calomel.training.edits.calls import is_member

Role = Literal["use", "member", "key", "keyword", "declared", "outside"]
_OUTSIDE: Final = frozenset({
    "import_specifier", "import_clause", "namespace_import", "aliased_import", "import_spec", "use_list",
    "use_as_clause", "use_declaration", "global_statement", "nonlocal_statement", "export_specifier",
})  # fmt: skip
_PAIRS: Final = frozenset({"pair", "pair_pattern", "field_initializer", "field_pattern"})
_PARAMETERS: Final = frozenset({
    "required_parameter", "optional_parameter", "typed_parameter", "default_parameter", "parameter",
    "parameter_declaration", "parameters", "formal_parameters", "lambda_parameters",
})  # fmt: skip
_DECLARING: Final = frozenset({"variable_declarator", "let_declaration", "named_expression"})


def role_of(node: Node) -> Role:
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
    if parent.type in _PARAMETERS:
        return node.type == "identifier" and parent.child_by_field_name("value") != node
    return parent.type in _DECLARING and parent.children[0] == node
