"""What lines and their indentation tell about a program, for languages and texts without a grammar."""

from __future__ import annotations

import re
from typing import Final, Literal

from calomel.workspace.definitions import Definition
from calomel.workspace.documents import Document
from calomel.workspace.languages import TABLES

# A tab is at least this wide in every editor; only the order of indentations counts.
_TAB: Final = 4
# How many lines up the headers of enclosing blocks are searched, and how many lines down their ends.
_REACH: Final = 2_000
_DEEPEST: Final = 12
_HEADER: Final = re.compile(
    r"^[ \t]*(?:[\w@]+[ \t]+){0,4}?"
    r"(?P<kind>class|def|fn|fun|func|function|interface|module|namespace|object|proc|struct|sub|trait|type)\b[ \t]+"
    r"(?P<name>[^\W\d]\w*(?:(?:\.|::)\w+)*)",
    re.MULTILINE,
)
_FUNCTIONS: Final = frozenset({"def", "fn", "fun", "func", "proc", "sub"})
_CLOSER: Final = re.compile(r"[ \t]*(?:[)\]}]|end\b|fi\b|done\b|esac\b)")
# The start of a comment that ends with its line.
_LINE_COMMENTS: Final = {name: mark for mark, names in TABLES["comments"].items() for name in names.split()}
_PROSE: Final = frozenset(TABLES["files"]["prose"].split())
# How many characters back the start of a multi-line comment is searched.
_COMMENT_REACH: Final = 4_000


def indent_of(line: str) -> int | None:
    """The width of a line's indentation; None for an empty line."""
    bare = line.lstrip(" \t")
    if not bare or bare[0] in "\r\n":
        return None
    return sum(_TAB if character == "\t" else 1 for character in line[: len(line) - len(bare)])


def scopes_by_indentation(document: Document, offset: int) -> tuple[Definition, ...]:
    """The headers above, with ever less indentation, the innermost last."""
    at = document.line_of(offset)
    first = max(0, at - _REACH)
    lines = document.lines(first, at + 1)
    here = lines.pop()
    column = offset - document.line_start(at)
    level = indent_of(here) if here[:column].strip() else column
    found: list[Definition] = []
    for number in range(len(lines) - 1, -1, -1):
        indent = indent_of(lines[number])
        if level is None or level == 0 or len(found) >= _DEEPEST:
            break
        if indent is None or indent >= level or _CLOSER.match(lines[number]):
            continue
        level = indent
        found.append(_scope(document, first + number, indent))
    return tuple(reversed(found))


def _scope(document: Document, header: int, indent: int) -> Definition:
    end = header + 1
    for number, line in enumerate(document.lines(header + 1, header + _REACH), header + 1):
        inside = indent_of(line)
        if inside is not None and inside <= indent:
            # The bracket that closes the block belongs to it.
            end = number + 1 if inside == indent and _CLOSER.match(line) else end
            break
        if inside is not None:
            end = number + 1
    line = document.line(header)
    name = _HEADER.match(line)
    start, behind = document.line_start(header), document.line_start(end)
    return Definition(
        kind="block" if name is None else "function" if name["kind"] in _FUNCTIONS else name["kind"],
        name="" if name is None else name["name"],
        signature=line.strip(),
        start=start,
        end=behind,
        head=start,
        body=document.line_start(header + 1),
        start_line=header,
        end_line=end - 1,
        body_line=header + 1,
        depth=int(indent > 0),
    )


def outline_by_lines(document: Document) -> tuple[Definition, ...]:
    """Lines that look like the header of a definition."""
    lines = (document.line_of(match.start("kind")) for match in _HEADER.finditer(document.text))
    return tuple(_scope(document, number, indent_of(document.line(number)) or 0) for number in lines)


def comment_or_string_by_line(document: Document, offset: int) -> Literal["comment", "string"] | None:
    """What the text before `offset` on its line leaves open; prose has neither."""
    if document.language_id in _PROSE:
        return None
    kind, _ = opened_before(document, offset)
    if kind is not None or document.language_id in _LINE_COMMENTS:
        return kind
    above = document.text[max(0, offset - _COMMENT_REACH) : offset]
    return "comment" if above.rfind("/*") > above.rfind("*/") else None


def opened_before(document: Document, offset: int) -> tuple[Literal["comment", "string"] | None, int]:
    """The comment or string that is open at `offset`, by the quotes on its line, and the offset where it begins."""
    number = document.line_of(offset)
    start = document.line_start(number)
    before = document.line(number)[: offset - start]
    comment = _LINE_COMMENTS.get(document.language_id, "//")
    quote, at, opened = "", 0, 0
    while at < len(before):
        character = before[at]
        if quote:
            at += character == "\\"
            quote = "" if character == quote else quote
        elif before.startswith(comment, at):
            return "comment", start + at
        elif character in "\"'`":
            quote, opened = character, at
        at += 1
    return ("string", start + opened) if quote else (None, offset)
