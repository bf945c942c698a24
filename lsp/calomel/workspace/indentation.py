"""What lines and their indentation say about a program, for languages and texts that no grammar reads."""

from __future__ import annotations

import re
from typing import Final, Literal

from calomel.prompts.differences import split_lines
from calomel.workspace.documents import Document
from calomel.workspace.scope import OutlineItem, Scope

# A tab is at least this wide for everybody; only the order of indentations counts.
_TAB: Final = 4
# How far up the headers of enclosing blocks are looked for, and how far down their ends.
_REACH: Final = 2_000
_DEEPEST: Final = 12
# A block begins with little indentation.
_SHALLOW: Final = 8
_HEADER: Final = re.compile(
    r"^[ \t]*(?:[\w@]+[ \t]+){0,4}?"
    r"(?P<kind>class|def|fn|fun|func|function|interface|module|namespace|object|proc|struct|sub|trait|type)\b[ \t]+"
    r"(?P<name>[^\W\d]\w*(?:(?:\.|::)\w+)*)",
    re.MULTILINE,
)
_FUNCTIONS: Final = frozenset({"def", "fn", "fun", "func", "proc", "sub"})
_CLOSER: Final = re.compile(r"[ \t]*(?:[)\]}]|end\b|fi\b|done\b|esac\b)")
# Where a comment starts that ends with its line.
_LINE_COMMENTS: Final = {
    **dict.fromkeys(("cmake", "dockerfile", "elixir", "julia", "makefile", "nix", "perl", "r", "toml", "yaml"), "#"),
    **dict.fromkeys(("python", "ruby", "shellscript", "sh", "bash", "zsh", "fish", "conf", "powershell"), "#"),
    **dict.fromkeys(("haskell", "lua", "sql", "elm", "ada", "vhdl"), "--"),
    **dict.fromkeys(("clojure", "lisp", "scheme", "asm", "ini"), ";"),
    **dict.fromkeys(("erlang", "latex", "tex", "matlab", "prolog"), "%"),
    "vim": '"',
}
_PROSE: Final = frozenset({
    "plaintext", "text", "markdown", "latex", "tex", "html", "xml", "restructuredtext", "rst", "asciidoc", "org",
    "gitcommit", "git-commit", "diff", "help",
})  # fmt: skip
# How far up the start of a comment over several lines is looked for.
_COMMENT_REACH: Final = 4_000


def indent_of(line: str) -> int | None:
    """The width of a line's indentation; None for an empty line."""
    bare = line.lstrip(" \t")
    if not bare or bare[0] in "\r\n":
        return None
    return sum(_TAB if character == "\t" else 1 for character in line[: len(line) - len(bare)])


def scopes_by_indentation(document: Document, offset: int) -> tuple[Scope, ...]:
    """The headers above with ever less indentation, the innermost last."""
    at = document.line_of(offset)
    first = max(0, at - _REACH)
    lines = document.lines(first, at + 1)
    here = lines.pop()
    column = offset - document.line_start(at)
    level = indent_of(here) if here[:column].strip() else column
    found: list[Scope] = []
    for number in range(len(lines) - 1, -1, -1):
        indent = indent_of(lines[number])
        if level is None or level == 0 or len(found) >= _DEEPEST:
            break
        if indent is None or indent >= level or _CLOSER.match(lines[number]):
            continue
        level = indent
        found.append(_scope(document, first + number, indent))
    return tuple(reversed(found))


def _scope(document: Document, header: int, indent: int) -> Scope:
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
    kind = "block" if name is None else _kind(name["kind"])
    start = document.line_start(header)
    return Scope(kind, "" if name is None else name["name"], line.strip(), start, document.line_start(end))


def _kind(word: str) -> str:
    return "function" if word in _FUNCTIONS else word


def block_starts_by_lines(text: str) -> tuple[int, ...]:
    """Lines behind an empty line with little indentation, and the first line."""
    found, empty = [0], False
    for number, line in enumerate(split_lines(text)):
        bare = line.lstrip(" \t")
        if not bare or bare[0] in "\r\n":
            empty = True
            continue
        if empty and bare[0] not in ")]}" and len(line) - len(bare) <= _SHALLOW and number:
            found.append(number)
        empty = False
    return tuple(found)


def outline_by_lines(document: Document) -> tuple[OutlineItem, ...]:
    """Lines that look like the header of a definition."""
    text = document.text
    found = []
    for match in _HEADER.finditer(text):
        number = document.line_of(match.start("kind"))
        line = document.line(number)
        indent = indent_of(line) or 0
        scope = _scope(document, number, indent)
        end_line = document.line_of(max(scope.start, scope.end - 1))
        found.append(
            OutlineItem(scope.kind, scope.name, scope.signature, number, end_line, number + 1, int(indent > 0))
        )
    return tuple(found)


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
