"""Functions, types and names that a line of code belongs to: by the tree, or else by words and indentation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tree_sitter import Node

from calomel.code.budget import check
from calomel.code.calls import ARROW, read_list
from calomel.code.languages import VARIABLES, Grammar
from calomel.code.lines import Rows, indent_of
from calomel.code.trees import Step

# Characters of a line that are looked at behind a name, and before it.
_NEAR: Final = 400
# Limit of the lines of a function's head.
_HEAD: Final = 24
_FUNCTION: Final = re.compile(
    r"^\s*(?:(?:async|export|default|public|private|protected|static|pub(?:\([^)]*\))?|const|unsafe|extern)\s+)*"
    r"(?:def|func|fn|function\*?)\b"
    r"|\bfunction\b\*?\s*[\w$]*\s*(?:<[^>]*>)?\("
    r"|\bfunc\b.*\{\s*$|\|[^|]*\|\s*(?:->.*)?\{\s*$"
    r"|=>\s*\{?\s*$"
    r"|^\s*(?:(?:async|public|private|protected|static|get|set|readonly)\s+)*"
    r"(?!if\b|for\b|while\b|switch\b|catch\b|match\b|return\b)[A-Za-z_$][\w$]*\s*(?:<[^>]*>)?\([^;]*\)\s*(?::[^{;=]+)?\{\s*$"
)
_DEFINITION: Final = re.compile(
    r"^\s*(?:(?:async|export|default|public|private|protected|static|abstract|pub(?:\([^)]*\))?|const|unsafe|extern)\s+)*"
    r"(?:def|func|fn|function\*?)\s+(?:\([^)]*\)\s*)?$"
)
_BOUND: Final = re.compile(r"^\s*(?:export\s+)?(?:const|let|var)\s+$")
_METHOD: Final = re.compile(r"^\s*(?:(?:async|public|private|protected|static|abstract|override|get|set)\s+)*$")


# Nodes of functions without a name, and of lists of parameters.
_ANONYMOUS: Final = frozenset({
    "arrow_function", "closure_expression", "func_literal", "function_expression", "generator_function", "lambda",
    "lambda_expression",
})  # fmt: skip
_PARAMETERS: Final = ("parameters", "parameter_list")
_NAMED: Final = frozenset({"function", "method"})
# A node's fields that hold the names it declares, and those that hold none.
_DECLARING: Final = frozenset({"name", "left", "pattern", "declarator", "alias", "parameter", "parameters"})
_VALUES: Final = frozenset({"right", "value", "type", "body", "return_type"})
_PATTERNS: Final = ("pattern", "parameter", "parameters", "_list", "_target", "tuple", "dotted_name", "declarator")
# Fields of members of a value, and nodes whose key or name is one.
_MEMBERS: Final = frozenset({"attribute", "property", "field"})
_FIELDS: Final = frozenset({"field_identifier", "property_identifier"})
_PAIRS: Final = frozenset({"pair", "field_initializer", "keyed_element", "property_signature"})
# Node types whose `name` belongs to something else, such as the callee, or whose `left` is used.
_OTHERS: Final = frozenset({
    "binary_expression", "binary_operator", "boolean_operator", "keyword_argument", "method_invocation",
    "qualified_type", "scoped_identifier", "scoped_type_identifier", "struct_expression",
})  # fmt: skip


def declares(steps: Sequence[Step]) -> bool:
    """Whether the last node of a way down declares its name: as a parameter, a variable, a function, an import."""
    for (parent, _), (_, field) in zip(steps[-2::-1], steps[:0:-1], strict=True):
        if parent.type in _OTHERS or field in _VALUES:
            return False
        if field in _DECLARING or "import" in parent.type or parent.type.startswith(("use_", "for_", "parameter")):
            return True
        if not parent.type.endswith(_PATTERNS):
            return False
    return False


def is_foreign(steps: Sequence[Step], text: str) -> bool:
    """Whether the last name of a way down is a member of anything but the object itself, or a parameter of a callee."""
    if len(steps) < 2:  # noqa: PLR2004 (the root has no parent)
        return False
    parent, field = steps[-2].node, steps[-1].field
    if parent.type in _OTHERS or parent.type in _PAIRS:
        return field in {"name", "key", "field"}
    if field not in _MEMBERS:
        return False
    whole = text[parent.start_byte // 2 : parent.end_byte // 2]
    return not whole.startswith(("self.", "this.")) or whole.count(".") > 1


def binds(rows: Rows, offset: int) -> bool | None:
    """Whether the name at an offset is a parameter or a variable declared there; None where no tree tells."""
    steps, grammar = rows.way(offset), rows.names.grammar
    return _binds(steps, grammar) if steps and grammar is not None else None


def _binds(steps: Sequence[Step], grammar: Grammar) -> bool:
    node, field = steps[-1]
    parent = steps[-2].node if len(steps) > 1 else None
    if parent is None or parent.type == "function_declarator" or node.type in _FIELDS:
        return False
    named = field == "name" and parent.type in grammar.definitions and parent.type not in VARIABLES
    return not named and declares(steps)


def is_inline(rows: Rows, offset: int) -> bool:
    """Whether the name at an offset is a parameter of a function without a name that is all on its line."""
    steps, grammar = rows.way(offset), rows.names.grammar
    if grammar is None or not steps or not _binds(steps, grammar):
        return False
    node = next((step.node for step in reversed(steps) if step.node.type in _ANONYMOUS), None)
    return node is not None and node.start_point.row == node.end_point.row


def _function_around(steps: Sequence[Step], grammar: Grammar) -> Node | None:
    """The function around the last node of a way down; None outside of all.

    A function without a name that is all on a line is a part of that line.
    """
    for node, _ in steps[:0:-1]:
        several = node.start_point.row < node.end_point.row
        if grammar.definitions.get(node.type) in _NAMED or (several and node.type in _ANONYMOUS):
            return node
    return None


def is_function(line: str) -> bool:
    """Whether a function starts in a line."""
    return _FUNCTION.search(line) is not None


def begins_function(rows: Rows, row: int) -> bool:
    """The same, also with parameters on the lines below."""
    line = rows.lines[row].rstrip()
    if is_function(line):
        return True
    found = read_list(rows.text, rows.start(row) + len(line) - 1) if line.endswith("(") else None
    name = re.search(r"[\w$]+(?:<[^>]*>)?\s*\($", line)
    return found is not None and name is not None and is_definition(line[: name.start()], rows.behind(found.end + 1))


def is_definition(before: str, after: str) -> bool:
    """Whether a parenthesised list, with `before` and `after` around name and list, holds parameters.

    Args:
        before: the line before the name.
        after: what follows the list on its last line.
    """
    if _DEFINITION.match(before) or (_BOUND.match(before) and ARROW.match(after)):
        return True
    return bool(_METHOD.match(before)) and re.match(r"\s*(?::[^{;=]+)?\{\s*$", after) is not None


def parameter_head(rows: Rows, row: int, column: int) -> int | None:
    """The line with the name of the function whose parameter list is at a place; None if none is."""
    steps, grammar = rows.way(rows.start(row) + column), rows.names.grammar
    if steps and grammar is not None:
        depth = next((at for at in range(len(steps) - 1, 0, -1) if steps[at].node.type.endswith(_PARAMETERS)), 0)
        function = _function_around(steps[: depth + 1], grammar)
        return None if function is None else function.start_point.row
    at = rows.opening(rows.start(row) + column, rows.start(max(0, row - _HEAD)))
    head = None if at is None or rows.text[at] != "(" else rows.row(at)
    return head if head is not None and begins_function(rows, head) else None


def function_rows(rows: Rows, row: int, at: int | None = None) -> range | None:
    """The lines of the innermost function around a line; None outside of all functions.

    With an offset `at` in the line, the function around that: a variable that holds a function is not in it.
    """
    last = max(rows.start(row), rows.start(row) + len(rows.lines[row].rstrip()) - 1)
    steps, grammar = rows.way(last if at is None else at), rows.names.grammar
    if steps and grammar is not None:
        node = _function_around(steps, grammar)
        return None if node is None else range(node.start_point.row, node.end_point.row + 1)
    head: int | None = row
    while head is not None and not begins_function(rows, head):
        head = outer(rows, head)
    return None if head is None else range(head, block_end(rows, head))


def _head_end(rows: Rows, row: int) -> int:
    """The line after the head of a block, which may be long: parameters, `where` clauses."""
    for at in range(row, min(len(rows), row + _HEAD)):
        line = rows.lines[at].rstrip()
        if line.endswith(("{", ":", "=>")):
            return at + 1
        if line.endswith(";") or not line:
            break
    return row + 1


def block_end(rows: Rows, row: int) -> int:
    """The line after the block that starts at `row`: its deeper lines, and its closing bracket."""
    check()
    width = len(indent_of(rows.lines[row]))
    end = _head_end(rows, row)
    for below in range(end, len(rows)):
        line = rows.lines[below]
        if not line.strip():
            continue
        inner = len(indent_of(line))
        closing = inner == width and line.lstrip()[:1] in {")", "}", "]"}
        if inner <= width and not closing:
            break
        end = below + 1
        if closing and not line.rstrip().endswith(("{", ":", "(", "[", ",")) and not line.lstrip().startswith(")"):
            break
    return end


_COLUMN: Final = re.compile(r"[ \t]*(?:-[ \t]+)*")
_SECTION: Final = re.compile(r"\[[^\]]+\]+\s*$")


def around(rows: Rows, row: int) -> tuple[str, ...]:
    """The lines that a line stands in, innermost first: keys, types and sections, not the function that it is in."""
    check()
    inside = function_rows(rows, row)
    row = row if inside is None else inside.start
    column, found = _COLUMN.match(rows.lines[row]).end(), []  # type: ignore[union-attr]
    for line in reversed(rows.lines[:row]):
        if not line.strip():
            continue
        own = _COLUMN.match(line).end()  # type: ignore[union-attr]
        section = not column and _SECTION.match(line) is not None
        if own < column or section:
            column = own
            if any(map(str.isalnum, line)):
                found.append(line.strip())
        if not column and (section or not own):
            break
    return tuple(found)


_CLASS: Final = re.compile(
    r"\s*(?:(?:export|default|abstract|pub)\s+)*(?:class|impl(?:<[^>]*>)?(?:\s+\w+\s+for)?)\s+(\w+)"
)
_METHOD_OF: Final = re.compile(r"\s*func\s*\(\s*\w*\s*\*?(\w+)[^)]*\)")
_NAMES: Final = re.compile(r"\b(?:def|class|fn|func|function)\s+$")
_RECEIVER: Final = re.compile(r"([\w$]*)(?:\([^()]*\))?\??(?:\.|->)\s*$")
_OWN: Final = frozenset({"self", "this", "cls"})
# Values that are no instance of a class unless they name it: literals, and calls of types.
_OTHER: Final = re.compile(r"[\[{(\"'`\d]|(?:set|list|dict|tuple|str|frozenset)\(|(?:new\s+)?[A-Z]\w*\(")


def in_scope(rows: Rows, row: int, name: str) -> bool:
    """Whether a name is defined for a line: in a function around it, or at the top level of the file."""
    around: list[range] = []
    above: int | None = row
    while above is not None and (function := function_rows(rows, above)) is not None:
        around.append(function)
        above = outer(rows, function.start)
    for match in re.finditer(rf"(?<![\w$.]){re.escape(name)}(?![\w$]|\s*=(?!=)[^\n]{{0,{_NEAR}}}\()", rows.text):
        check()
        at, before = rows.row(match.start()), rows.before(match.start())
        if rows.is_quoted(match.start()):
            continue
        at_top = not indent_of(rows.lines[at]) and (not begins_function(rows, at) or _NAMES.search(before))
        if at != row and (at_top or any(at in each for each in around)):
            return True
    return False


def receiver_of(text: str, at: int) -> str | None:
    """What precedes the dot before a name: `cart` in `cart.add`; None without a dot."""
    match = _RECEIVER.search(text, max(text.rfind("\n", 0, at) + 1, at - _NEAR), at)
    return None if match is None else match.group(1)


def owner_of(rows: Rows, row: int) -> str | None:
    """The class or type that a definition in a line belongs to; None outside of all."""
    method = _METHOD_OF.match(rows.lines[row])
    if method is not None:
        return method.group(1)
    at = outer(rows, row)
    while at is not None:
        match = _CLASS.match(rows.lines[at])
        if match is not None:
            return match.group(1)
        at = outer(rows, at)
    return None


def may_be(rows: Rows, at: int, owner: str | None) -> bool:
    """Whether a call at an offset may be one of `owner`'s: a method of this class, or without one, a function."""
    receiver = receiver_of(rows.text, at)
    if owner is None or receiver is None:
        # Methods of an object literal have no class.
        return owner is None and (receiver is None or receiver in _OWN)
    if receiver in _OWN:
        return owner_of(rows, rows.row(at)) == owner
    bound = rf"(?<![\w$]){re.escape(receiver)}\s*(?::[^=\n]{{0,{_NEAR}}})?:?=(?!=)\s*(\S[^\n]{{0,{_NEAR}}})"
    values = [match.group(1) for match in re.finditer(bound, rows.text)] if receiver else []
    return not values or not all(_OTHER.match(value) and owner not in value for value in values)


def outer(rows: Rows, row: int) -> int | None:
    """The nearest line above with less indentation that begins something, unlike the last line of a head."""
    check()
    width = len(indent_of(rows.lines[row]))
    for at in range(row - 1, -1, -1):
        line = rows.lines[at].strip()
        if line and len(indent_of(rows.lines[at])) < width and line[0] not in ")]" and line != "{":
            return at
    return None
