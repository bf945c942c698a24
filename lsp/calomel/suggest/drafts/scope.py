"""What a name means at a place, as far as one file shows it, without a grammar."""

from __future__ import annotations

import re
from typing import Final

from calomel.suggest.drafts.block import begins_function, function_rows
from calomel.suggest.drafts.rows import Rows, indent_of

_CLASS: Final = re.compile(
    r"\s*(?:(?:export|default|abstract|pub)\s+)*(?:class|impl(?:<[^>]*>)?(?:\s+\w+\s+for)?)\s+(\w+)"
)
_METHOD: Final = re.compile(r"\s*func\s*\(\s*\w*\s*\*?(\w+)[^)]*\)")
_NAMES: Final = re.compile(r"\b(?:def|class|fn|func|function)\s+$")
_RECEIVER: Final = re.compile(r"([\w$]*)(?:\([^()]*\))?\??(?:\.|->)\s*$")
_OWN: Final = frozenset({"self", "this", "cls"})
# What a value is made of that is no instance of a class with another name: a literal, or a call of a known type.
_OTHER: Final = re.compile(r"[\[{(\"'`\d]|(?:set|list|dict|tuple|str|frozenset)\(|(?:new\s+)?[A-Z]\w*\(")


def in_scope(rows: Rows, row: int, name: str) -> bool:
    """Whether a name stands for something in a line: in a function around it, or at the top of the file."""
    around: list[range] = []
    function = function_rows(rows, row)
    while function is not None:
        around.append(function)
        width = len(indent_of(rows.lines[function.start]))
        outer = _outer(rows, function.start, width)
        function = None if outer is None else function_rows(rows, outer)
    for match in re.finditer(rf"(?<![\w$.]){re.escape(name)}(?![\w$]|\s*=(?!=)[^\n]*\()", rows.text):
        at = rows.row(match.start())
        line = rows.lines[at]
        if at == row:
            continue
        if any(at in each for each in around):
            return True
        if not indent_of(line) and (
            not begins_function(rows, at) or _NAMES.search(line[: match.start() - rows.start(at)])
        ):
            return True
    return False


def receiver_of(text: str, at: int) -> str | None:
    """What stands before the dot before a name: `cart` of `cart.add`; None without a dot."""
    match = _RECEIVER.search(text[text.rfind("\n", 0, at) + 1 : at])
    return None if match is None else match.group(1)


def owner_of(rows: Rows, row: int) -> str | None:
    """The class or type that a definition in a line belongs to; None outside of every one."""
    method = _METHOD.match(rows.lines[row])
    if method is not None:
        return method.group(1)
    at: int | None = row
    while at is not None:
        match = _CLASS.match(rows.lines[at])
        if match is not None and at != row:
            return match.group(1)
        at = _outer(rows, at, len(indent_of(rows.lines[at])))
    return None


def may_be(rows: Rows, at: int, owner: str | None) -> bool:
    """Whether what is called at an offset may be that of `owner`: a method of this class, or a function of none."""
    receiver = receiver_of(rows.text, at)
    if owner is None or receiver is None:
        return owner is None and receiver is None
    if receiver in _OWN:
        return owner_of(rows, rows.row(at)) == owner
    bound = rf"(?<![\w$]){re.escape(receiver)}\s*(?::[^=\n]*)?:?=(?!=)\s*(\S[^\n]*)"
    values = [match.group(1) for match in re.finditer(bound, rows.text)] if receiver else []
    return not values or not all(_OTHER.match(value) and owner not in value for value in values)


def _outer(rows: Rows, row: int, width: int) -> int | None:
    """The nearest line above with less indentation."""
    for above in range(row - 1, -1, -1):
        line = rows.lines[above]
        if line.strip() and len(indent_of(line)) < width:
            return above
    return None
