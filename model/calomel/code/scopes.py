"""Functions, types and names that a line of code belongs to, found by words and indentation only."""

from __future__ import annotations

import re
from typing import Final

from calomel.code.calls import read_list
from calomel.code.lines import Rows, indent_of
from calomel.code.tokens import is_prose, is_quoted

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
# A type as C, Java and their kin write it in front of a name: `static`, `const char *`, `List<String>[]`.
TYPE: Final = (
    r"(?!(?:return|else|new|throw|await|case|goto|delete|yield|if|for|while|switch|catch|do|in|of|def|func|fn|function|"
    r"class|let|var|type|import|export)\b)"
    r"[A-Za-z_](?:[\w.]|::|<[^<>;=]*(?:<[^<>;=]*>)?[^<>;=]*>)*(?:\[\])*(?:\s+(?:[*&]+\s*)?|[*&]+\s*)"
)
_TYPED: Final = re.compile(
    rf"\s*((?:{TYPE})*)~?(?!(?:if|for|while|switch|catch)\b)[A-Za-z_][\w:]*\s*\([^;{{}}]*(?:\)[\w., ]*\{{?)?\s*$"
)
_BOUND: Final = re.compile(r"^\s*(?:export\s+)?(?:const|let|var)\s+$")
_ARROW: Final = re.compile(r"\s*(?::[^={;]*)?=>")
_LONGEST_HEAD: Final = 400
_BODY: Final = re.compile(r"\s*(?:(?:const|noexcept|override|throws\s[\w., ]+)\s*)*\{")
_METHOD: Final = re.compile(r"^\s*(?:(?:async|public|private|protected|static|abstract|override|get|set)\s+)*$")


def is_function(line: str) -> bool:
    """Whether a function starts in a line."""
    return _FUNCTION.search(line) is not None


def begins_function(rows: Rows, row: int) -> bool:
    """The same, also with parameters on the lines below or with types in front of them."""
    line = rows.lines[row].rstrip()
    if is_function(line) or is_typed_head(rows, row):
        return True
    found = read_list(rows.text, rows.start(row) + len(line) - 1) if line.endswith("(") else None
    name = re.search(r"[\w$]+(?:<[^>]*>)?\s*\($", line)
    return found is not None and name is not None and is_definition(line[: name.start()], rows.behind(found.end + 1))


def is_typed_head(rows: Rows, row: int) -> bool:
    """Whether a function starts in a line with types in front of its parameters, as in C and Java."""
    line = rows.lines[row]
    found = _TYPED.match(line) if len(line) <= _LONGEST_HEAD else None
    listed = None if found is None else read_list(rows.text, rows.start(row) + line.index("("))
    body = None if listed is None else _BODY.match(rows.text, listed.end + 1)
    # If the return type is on the line above, only a body that starts below tells it from a call.
    return found is not None and body is not None and (bool(found[1]) or "\n" in body[0])


def is_definition(before: str, after: str) -> bool:
    """Whether a parenthesised list, with `before` and `after` around name and list, holds parameters.

    Args:
        before: the line before the name.
        after: what follows the list on its last line.
    """
    if _DEFINITION.match(before) or (_BOUND.match(before) and _ARROW.match(after)):
        return True
    return bool(_METHOD.match(before)) and re.match(r"\s*(?::[^{;=]+)?\{\s*$", after) is not None


def parameter_head(rows: Rows, row: int, column: int) -> int | None:
    """The line with the name of the function whose parameter list is at a place; None if none is."""
    at = rows.opening(rows.start(row) + column, rows.start(max(0, row - _HEAD)))
    found = None if at is None or rows.text[at] != "(" else read_list(rows.text, at)
    if at is None or found is None:
        return None
    head, after = rows.row(at), rows.behind(found.end + 1)
    named = re.sub(r"[\w$]*(?:<[^>]*>)?\s*$", "", rows.before(at), count=1)
    lambdas = re.match(r"\s*(?::[^{=;]+)?=>", after)
    defines = is_function(rows.lines[head]) or is_typed_head(rows, head) or is_definition(named, after)
    return head if defines or lambdas else None


def function_rows(rows: Rows, row: int) -> range | None:
    """The lines of the innermost function around a line; None outside of all functions."""
    width = len(indent_of(rows.lines[row])) + begins_function(rows, row)
    for above in range(row, -1, -1):
        line = rows.lines[above].strip()
        indent = len(indent_of(rows.lines[above]))
        # The last line of a multi-line head belongs to a start above with this indentation.
        if not line or indent >= width or line[0] in ")]" or line == "{":
            continue
        if begins_function(rows, above):
            return range(above, block_end(rows, above))
        width = indent
        if not width:
            return None
    return None


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
    for match in re.finditer(rf"(?<![\w$.]){re.escape(name)}(?![\w$]|\s*=(?!=)[^\n]*\()", rows.text):
        at, before = rows.row(match.start()), rows.before(match.start())
        if is_prose(rows.lines[at]) or is_quoted(rows.lines[at], len(before), rows.names):
            continue
        at_top = not indent_of(rows.lines[at]) and (not begins_function(rows, at) or _NAMES.search(before))
        if at != row and (at_top or any(at in each for each in around)):
            return True
    return False


def receiver_of(text: str, at: int) -> str | None:
    """What precedes the dot before a name: `cart` in `cart.add`; None without a dot."""
    match = _RECEIVER.search(text, text.rfind("\n", 0, at) + 1, at)
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
    bound = rf"(?<![\w$]){re.escape(receiver)}\s*(?::[^=\n]*)?:?=(?!=)\s*(\S[^\n]*)"
    values = [match.group(1) for match in re.finditer(bound, rows.text)] if receiver else []
    return not values or not all(_OTHER.match(value) and owner not in value for value in values)


def outer(rows: Rows, row: int) -> int | None:
    """The nearest line above with less indentation."""
    width = len(indent_of(rows.lines[row]))
    lines = ((at, rows.lines[at]) for at in range(row - 1, -1, -1))
    return next((at for at, line in lines if line.strip() and len(indent_of(line)) < width), None)
