"""The smallest piece of code around a name that can be taken out so that the rest still makes sense."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tree_sitter import Node

from calomel.training.edits.calls import call_sites
from calomel.training.edits.functions import functions
from calomel.training.edits.source import Source
from calomel.training.edits.statements import line_removal
from calomel.training.edits.story import Change

_MOST_CHARACTERS: Final = 700
_MOST_LINES: Final = 10
_SEPARATORS: Final = frozenset({",", "|"})
# Parts of lists and blocks that stand for themselves.
_ELEMENTS: Final = frozenset({
    "match_arm", "switch_case", "expression_case", "type_case", "case_clause", "pair", "keyed_element",
    "field_initializer", "shorthand_field_initializer", "field_pattern", "enum_variant", "field_declaration",
    "public_field_definition", "property_signature", "enum_assignment", "shorthand_property_identifier",
    "shorthand_property_identifier_pattern", "pair_pattern", "const_spec", "elif_clause", "decorator",
})  # fmt: skip
_LISTS: Final = frozenset({
    "list", "set", "array", "enum_body", "union_type", "or_pattern", "union_pattern", "array_expression",
    "list_pattern", "expression_case_list",
})  # fmt: skip
# What a list of a value is made of: Go wraps each in a node of its own.
_WRAPPED: Final = frozenset({"literal_element"})
_STATEMENTS: Final = frozenset({
    "expression_statement", "assert_statement", "delete_statement", "assignment_statement", "inc_statement",
    "dec_statement", "go_statement", "defer_statement", "send_statement", "call_statement",
})  # fmt: skip
_DECLARATIONS: Final = frozenset({
    "let_declaration", "lexical_declaration", "variable_declaration", "short_var_declaration", "var_declaration",
})  # fmt: skip
_FUNCTIONS: Final = frozenset({
    "function_definition", "decorated_definition", "function_declaration", "method_definition", "method_declaration",
    "function_item", "abstract_method_signature", "method_signature", "method_elem",
})  # fmt: skip
_BRANCHES: Final = frozenset({"if_statement", "if_expression"})
_ASSIGNMENTS: Final = frozenset({"assignment", "augmented_assignment", "assignment_expression", "assignment_statement"})
_TAIL: Final = re.compile(r"[ \t]*[,;]?[ \t]*(?:(?:#|//).*)?")
_ATTACHED: Final = re.compile(r"[ \t]*(?:#\[|///|@)")


def unit_changes(source: Source, uses: Iterable[Node], name: str) -> list[Change] | None:
    """Edits that take out all uses, by position; None where one of them cannot be."""
    changes: set[Change] = set()
    for node in uses:
        found = _parameter(source, node, name)
        if found is None:
            unit = unit_of(source, node, name)
            change = None if unit is None else item_removal(source, unit)
            if change is None:
                return None
            found = [change]
        changes.update(found)
    # The larger of two that lie in each other stays.
    kept: list[Change] = []
    for change in sorted(changes, key=lambda each: (each.start, -each.end)):
        if not kept or change.end > kept[-1].end:
            kept.append(change)
    return kept


def unit_of(source: Source, node: Node, name: str) -> Node | None:
    """The smallest unit around a node."""
    at: Node | None = node
    while at is not None and at.parent is not None:
        if not _fits(source, at):
            return None
        if _is_unit(source, at, name):
            return at
        at = at.parent
    return None


def _fits(source: Source, node: Node) -> bool:
    lines = node.end_point[0] - node.start_point[0] + 1
    return lines <= _MOST_LINES and node.end_byte - node.start_byte <= _MOST_CHARACTERS and node != source.root


def _is_unit(source: Source, node: Node, name: str) -> bool:  # noqa: C901, PLR0911 (one for each kind)
    parent = node.parent
    kind = node.type
    if kind in _ELEMENTS or (parent is not None and parent.type in _LISTS and node.is_named):
        return True
    if kind in _WRAPPED:
        return parent is not None and parent.type != "keyed_element"
    if parent is not None and parent.type == "tuple":
        return kind == "string"
    if kind == "keyword_argument":
        label = node.child_by_field_name("name")
        return label is not None and source.slice(label) == name
    if kind in _STATEMENTS:
        return _only_effect(node) and not _alone(node)
    if kind in _DECLARATIONS:
        return not _alone(node) and _only_here(source, node)
    if kind in _BRANCHES:
        if _is_else_if(node):
            return True
        return node.child_by_field_name("alternative") is None and not _alone(node) and _is_statement(node)
    if kind in _FUNCTIONS:
        if parent is not None and parent.type == "decorated_definition":
            return False
        inner = node.child_by_field_name("definition") or node
        label = inner.child_by_field_name("name")
        return label is not None and len(source.identifiers(source.slice(label))) == 1
    return False


def _only_effect(node: Node) -> bool:
    """Whether a statement defines no name that later lines use."""
    inner = node.named_children[0] if node.type == "expression_statement" and node.named_children else node
    if inner.type not in _ASSIGNMENTS:
        return inner.type not in {"string", "if_expression", "match_expression", "while_expression", "for_expression"}
    left = inner.child_by_field_name("left")
    if left is not None and left.type == "expression_list" and len(left.named_children) == 1:
        left = left.named_children[0]
    in_class = inner.parent is not None and _in_class(inner.parent)
    return left is not None and (left.type != "identifier" or in_class)


def _in_class(node: Node) -> bool:
    block = node.parent
    return block is not None and block.parent is not None and block.parent.type == "class_definition"


def _only_here(source: Source, node: Node) -> bool:
    """Whether the names that a declaration makes are used nowhere else."""
    holder = node.named_children[0] if node.named_children else node
    left = (
        node.child_by_field_name("pattern")
        or node.child_by_field_name("left")
        or (holder.child_by_field_name("name") if holder.type == "variable_declarator" else None)
    )
    if left is None:
        return False
    names = re.findall(r"[^\W\d]\w*", source.slice(left))
    return all(
        node.start_byte <= each.start_byte < node.end_byte
        for name in names
        if name not in {"mut", "ref", "_", "err"}
        for each in source.identifiers(name)
    )


def _alone(node: Node) -> bool:
    """Whether nothing else is in the block."""
    return node.parent is None or sum(not child.is_extra for child in node.parent.named_children) == 1


def _is_statement(node: Node) -> bool:
    parent = node.parent
    return parent is not None and parent.type in {
        "block", "statement_block", "module", "program", "expression_statement", "statement_list", "source_file",
    }  # fmt: skip


def _is_else_if(node: Node) -> bool:
    parent = node.parent
    if parent is None or node.type not in _BRANCHES:
        return False
    return parent.type == "else_clause" or (
        parent.type == node.type and parent.child_by_field_name("alternative") == node
    )


def _else_if_removal(source: Source, node: Node) -> Change | None:
    """Take out `else if …`, from the bracket before it to the one that closes it; what follows stays."""
    word = node.prev_sibling if node.parent is None or node.parent.type != "else_clause" else node.parent
    body = node.child_by_field_name("consequence")
    if word is None or body is None:
        return None
    start = source.span(word)[0]
    while source.text[start - 1] in " \t\n":
        start -= 1
    return Change(start, source.span(body)[1], "")


def item_removal(source: Source, node: Node) -> Change | None:
    """Take a node out of its list or block, with its comma or its lines; None where more stands in its line."""
    if _is_else_if(node):
        return _else_if_removal(source, node)
    text = source.text
    start, end = source.span(node)
    # Go's clauses hold the line end behind them.
    end = start + len(text[start:end].rstrip())
    begin, stop = source.line_start(start), text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    if not text[begin:start].strip() and _TAIL.fullmatch(text[end:stop]):
        first = begin
        while first > 0 and _ATTACHED.match(text, above := source.line_start(first - 1), first):
            first = above
        return line_removal(source, first, end)
    following, before = node.next_sibling, node.prev_sibling
    if following is not None and following.type in _SEPARATORS:
        end = source.span(following)[1]
        while text[end : end + 1] in {" ", "\t"}:
            end += 1
    elif before is not None and before.type in _SEPARATORS:
        start = source.span(before)[0]
        while before.type == "|" and text[start - 1] in " \t\n":
            start -= 1
    elif node.parent is None or len(node.parent.named_children) != 1 or node.parent.type not in _LISTS:
        return None
    return Change(start, end, "")


def _parameter(source: Source, node: Node, name: str) -> list[Change] | None:
    """Take a parameter out, and what its function's calls give for it; None where the node is no parameter."""
    for function in functions(source):
        if not function.node.start_byte <= node.start_byte < function.node.end_byte:
            continue
        index = 0
        for parameter in function.parameters:
            if parameter.name_node == node:
                sites = call_sites(source, function)
                if parameter.grouped or function.list is None or sites is None:
                    return None
                changes = [function.list.remove(parameter.item)]
                for call in sites:
                    texts = call.arguments.texts()
                    if any(re.match(rf"{name}\s*=(?!=)", text) for text in texts):
                        continue
                    if any(re.match(r"\*|\.\.\.", text) for text in texts):
                        return None
                    if index < len(texts) and not re.match(r"\w+\s*=(?!=)", texts[index]):
                        changes.append(call.arguments.remove(index))
                return changes
            index += parameter.role != "self"
    return None
