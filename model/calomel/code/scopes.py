"""Functions, types and names that a line of code belongs to: by the tree, or else by words and indentation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tree_sitter import Node

from calomel.code.bindings import Binding, Mention
from calomel.code.budget import check
from calomel.code.calls import ARROW, read_list
from calomel.code.languages import Grammar
from calomel.code.lines import Rows, indent_of
from calomel.code.names import parts
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
# Words of a name that means the same wherever it stands.
_DISTINCT: Final = 3
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
    """Whether a call at an offset may be one of `owner`'s: a method of this class, or without one, a function.

    What is called on must be of the class as far as the file says: by its own name, a value or a type.
    """
    receiver = receiver_of(rows.text, at)
    if owner is None or receiver is None:
        # Methods of an object literal have no class.
        return owner is None and (receiver is None or receiver in _OWN)
    if receiver in _OWN or receiver == owner:
        return receiver == owner or owner_of(rows, rows.row(at)) == owner
    if not receiver or receiver[:1].isupper():
        return False
    bound = rf"(?<![\w$.]){re.escape(receiver)}\s*(?::([^=\n,)]{{0,{_NEAR}}}))?(?::?=(?!=)\s*(\S[^\n]{{0,{_NEAR}}}))?"
    told = [match[1] or match[2] for match in re.finditer(bound, rows.text) if match[1] or match[2]]
    of, value = rf"\b{re.escape(owner)}\b", rf"\b{re.escape(receiver)}\b"
    typed = rf"{of}[\s*&]+{value}|{value}[\s*&]+{of}"
    if any(re.search(of, each) for each in told) or re.search(typed, rows.text):
        return True
    own, named = parts(owner), parts(receiver)
    # A long name is hardly another one's.
    alike = own[-len(named) :] == named or len(parts(rows.names.beginning(rows.text, at))) >= _DISTINCT
    return alike and not (told and all(map(_OTHER.match, told)))


def outer(rows: Rows, row: int) -> int | None:
    """The nearest line above with less indentation that begins something, unlike the last line of a head."""
    check()
    width = len(indent_of(rows.lines[row]))
    for at in range(row - 1, -1, -1):
        line = rows.lines[at].strip()
        if line and len(indent_of(rows.lines[at])) < width and line[0] not in ")]" and line != "{":
            return at
    return None


# What declares a variable in a language without a grammar here: `{0}` is its name.
_DECLARED: Final = (
    r"(?:\b(?:let|const|var|val|my|our|local|mut|for|auto|final)\s+(?:mut\s+)?[({{\[]?|^\s*\(?)(?:\w+\s*,\s*)*{0}"
    r"(?:\s*,\s*\w+)*[)}}\]]?\s*(?::[^=]*)?(?::?=(?!=)|\bin\b|\bof\b|<-)"
)
# Before the name that a block gives an error or a context.
_CAUGHT: Final = re.compile(r"^\s*(?:except|with|async with)\b.*\bas\s+$")
# Before the name of a parameter; its type has other text before it.
_PARAMETER: Final = re.compile(r"(?:^|[(,*.{])\s*(?:(?:mut|public|private|protected|readonly|const|final)\s+)*$")
_KEYWORD: Final = re.compile(r"=(?!=)")
_LINK: Final = re.compile(r"\w+://\S*|\]\([^)\s]*|\bwww\.\S*")
_MOST: Final = 400


def is_in_link(line: str, column: int) -> bool:
    """Whether a place in a line is in an address, or in the target of a link."""
    return any(found.start() <= column < found.end() for found in _LINK.finditer(line))


def by_words(rows: Rows, *names: str) -> tuple[Mention, ...]:
    """The occurrences of names by the words around them, in a language without a table of scopes.

    A name belongs to the function that declares it. If none does, it belongs to the outermost function around it,
    unless it stands outside of functions, too: then it is the file's.
    """
    found: list[Mention] = []
    for name in names:
        for match in rows.uses(name):
            check()
            found.append(_by_words(rows, name, match.start(), match.end()))
            if len(found) > _MOST:
                return ()
    found.sort(key=lambda each: each.start)
    # A function is not in itself.
    chains = [_functions(rows, each.start)[each.mode == "around" :] for each in found]
    declared = {home for each in found if each.mode == "block" and (home := _home(rows, each)) is not None}
    outside = any(
        not chain and each.role == "variable" and not _is_sigil(each.name)
        for each, chain in zip(found, chains, strict=True)
    )
    kept: list[Mention] = []
    for each, chain in zip(found, chains, strict=True):
        holding = (one for one in declared if rows.row(each.start) in one)
        home = _home(rows, each) if each.mode == "block" else min(holding, key=len, default=None)
        if home is None and chain and (_is_sigil(each.name) or not outside):
            home = chain[0] if _is_sigil(each.name) else chain[-1]
        bound = Binding("file", 0, len(rows.text)) if home is None else _lines(rows, home)
        kept.append(replace(each, binding=bound if each.role in {"variable", "string", "comment"} else None))
    return tuple(kept)


def _lines(rows: Rows, home: range) -> Binding:
    return Binding(f"{home.start}:{home.stop}", rows.start(home.start), rows.start(home.stop))


def _is_sigil(name: str) -> bool:
    return name.startswith("$")


def _functions(rows: Rows, at: int) -> list[range]:
    """The lines of the functions around an offset, the innermost first."""
    found: list[range] = []
    head = parameter_head(rows, rows.row(at), len(rows.before(at)))
    above: int | None = rows.row(at) if head is None else head
    while above is not None and (function := function_rows(rows, above)) is not None:
        found.append(function)
        above = outer(rows, function.start)
    return found


def _home(rows: Rows, mention: Mention) -> range | None:
    """The lines in which a variable counts that is declared here; None for the file's."""
    row, before = rows.row(mention.start), rows.before(mention.start)
    if _CAUGHT.search(before):
        return range(row, block_end(rows, row))
    return next(iter(_functions(rows, mention.start)), None)


def _by_words(rows: Rows, name: str, start: int, end: int) -> Mention:
    row, before, after = rows.row(start), rows.before(start), rows.behind(end)
    called, bare = after.lstrip().startswith("("), before.rstrip()
    if is_in_link(rows.lines[row], len(before)):
        return Mention(name, start, end, "token")
    if rows.is_quoted(start):
        return Mention(name, start, end, "string" if "#" not in before and "//" not in before else "comment")
    if bare.endswith((".", "->", "::")) and not bare.endswith(".."):
        return Mention(name, start, end, "member", receiver=receiver_of(rows.text, start) or "?", called=called)
    if bare.endswith(("(", ",", "{")) and _KEYWORD.match(after.lstrip()):
        callee = rows.opening(start, rows.start(max(0, row - _HEAD)))
        before_callee = "" if callee is None else rows.names.ending(rows.text, callee)
        place = None if not before_callee or callee is None else callee - len(before_callee)
        return Mention(name, start, end, "keyword", callee=place)
    if _NAMES.search(before[-_NEAR:]):
        return Mention(name, start, end, "variable", mode="around", called=called)
    head = parameter_head(rows, row, len(before))
    parameter = head is not None and _PARAMETER.search(before) is not None
    bound = parameter or _CAUGHT.search(before) or re.search(_DECLARED.format(re.escape(name)), rows.lines[row])
    return Mention(name, start, end, "variable", mode="block" if bound else "", called=called)
