"""Which lines belong together, by indentation and the words that functions begin with; no grammar needed."""

from __future__ import annotations

import re
from typing import Final

from calomel.suggest.drafts.listed import read_list
from calomel.suggest.drafts.rows import Rows, indent_of

# Lines of a head.
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
_LONGEST_HEAD: Final = 400
_BODY: Final = re.compile(r"\s*(?:(?:const|noexcept|override|throws\s[\w., ]+)\s*)*\{")
_METHOD: Final = re.compile(r"^\s*(?:(?:async|public|private|protected|static|abstract|override|get|set)\s+)*$")


def is_function(line: str) -> bool:
    """Whether a line begins a function."""
    return _FUNCTION.search(line) is not None


def begins_function(rows: Rows, row: int) -> bool:
    """The same for a line whose parameters may stand on the lines below."""
    line = rows.lines[row]
    if is_function(line) or is_typed_head(rows, row):
        return True
    if not line.rstrip().endswith("("):
        return False
    found = read_list(rows.text, rows.start(row) + len(line.rstrip()) - 1)
    if found is None:
        return False
    name = re.search(r"[\w$]+(?:<[^>]*>)?\s*\($", line.rstrip())
    after = rows.text[found.end + 1 : rows.end(rows.row(found.end))]
    return name is not None and is_definition(line[: name.start()], after)


def is_typed_head(rows: Rows, row: int) -> bool:
    """Whether a function begins in a line whose parameters have their types in front of them, as in C and Java."""
    line = rows.lines[row]
    found = _TYPED.match(line) if len(line) <= _LONGEST_HEAD else None
    listed = None if found is None else read_list(rows.text, rows.start(row) + line.index("("))
    body = None if listed is None else _BODY.match(rows.text, listed.end + 1)
    # Without a type in its line, which may stand above, only a body that begins below tells it from a call.
    return found is not None and body is not None and (bool(found[1]) or "\n" in body[0])


def is_definition(before: str, after: str) -> bool:
    """Whether a parenthesised list, with `before` and `after` around name and list, holds parameters.

    Args:
        before: the line before the name.
        after: what follows the list on its last line.
    """
    if _DEFINITION.match(before):
        return True
    return bool(_METHOD.match(before)) and re.match(r"\s*(?::[^{;=]+)?\{\s*$", after) is not None


def parameter_head(rows: Rows, row: int, column: int) -> int | None:
    """The line with the name of the function whose parameters stand at a place; None when it holds none."""
    at = rows.opening(rows.start(row) + column, rows.start(max(0, row - _HEAD)))
    if at is None or rows.text[at] != "(":
        return None
    head = rows.row(at)
    found = read_list(rows.text, at)
    if found is None:
        return None
    before = rows.text[rows.start(head) : at]
    after = rows.text[found.end + 1 : rows.end(rows.row(found.end))]
    name = re.search(r"[\w$]*(?:<[^>]*>)?\s*$", before)
    named = before[: name.start()] if name else before
    if (
        is_function(rows.lines[head])
        or is_typed_head(rows, head)
        or is_definition(named, after)
        or re.match(r"\s*(?::[^{=;]+)?=>", after)
    ):
        return head
    return None


def function_rows(rows: Rows, row: int) -> range | None:
    """The lines of the innermost function that a line is in; None outside of every function."""
    width = len(indent_of(rows.lines[row])) + (1 if begins_function(rows, row) else 0)
    for above in range(row, -1, -1):
        line = rows.lines[above]
        if line.strip() and len(indent_of(line)) < width:
            if line.lstrip()[:1] in {")", "]"} or line.strip() == "{":
                # The end of a head over several lines, which began above at this width.
                continue
            if begins_function(rows, above):
                return range(above, block_end(rows, above))
            width = len(indent_of(line))
            if not width:
                return None
    return None


def _head_end(rows: Rows, row: int) -> int:
    """The line behind the head of a block, which may be long: parameters, `where` clauses."""
    for at in range(row, min(len(rows), row + _HEAD)):
        line = rows.lines[at].rstrip()
        if line.endswith(("{", ":", "=>")):
            return at + 1
        if line.endswith(";") or not line:
            break
    return row + 1


def block_end(rows: Rows, row: int) -> int:
    """The line behind the block that `row` begins: its deeper lines, and the bracket that closes it."""
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
