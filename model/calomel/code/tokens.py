"""The words and marks of a line in any language: `tokens` splits one, `changes` compares two, token by token.

No grammar is needed, so code may be incomplete.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

import regex

from calomel.code.languages import RESERVED
from calomel.code.names import COMMON, LONGEST_LINE, Names
from calomel.prompts.parts import differences

_TOKEN: Final = regex.compile(
    r"""[^\W\d]\w*                            # a name
    | \d(?:[\w.]*\w)?                         # a number
    | "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | `(?:[^`\\]|\\.)*`
    | [ \t]+
    | ===|!==|->|=>|::|:=|==|!=|<=|>=|&&|\|\||\.\.\.|\.\.|\?\.|\*\*|<-|//
    | .""",
    regex.VERBOSE | regex.DOTALL,
)
_NAME: Final = regex.compile(r"[^\W\d]\w*")
_COMMENT: Final = re.compile(r"\s*(?://|#(?!!?\[|include|define|if|endif|pragma)|--|/\*|\*|<!--|;|%|\"\"\")")
_IMPORT: Final = re.compile(
    r"\s*(?:(?:from\s+\S+\s+)?import\b|#\s*include\b|(?:pub\s+)?use\s+[\w:{]|using\s+[\w.]+\s*;|require(?:_relative)?\b"
    r"|(?:const|let|var)\s+.{1,200}=\s*require\(|export\s.*\bfrom\b)"
)
_BRIEF: Final = 3


class Token(NamedTuple):
    """A token and where it starts in its line."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


@lru_cache(maxsize=4096)
def tokens(line: str) -> tuple[Token, ...]:
    """All tokens of a line, blanks included; a line that is too long to be read is one.

    Cached, since most lines do not change between keystrokes.
    """
    if len(line) > LONGEST_LINE:
        return (Token(line, 0),)
    return tuple(Token(match.group(), match.start()) for match in _TOKEN.finditer(line))


def words(text: str) -> list[str]:
    """The names and keywords in a text, including strings and comments."""
    found: list[str] = _NAME.findall(text)
    return found


def is_name(token: str) -> bool:
    """Whether a token is a name that a person chose."""
    return _NAME.fullmatch(token) is not None and token not in RESERVED


def is_identifier(token: str) -> bool:
    """Whether a token is a name or a keyword."""
    return _NAME.fullmatch(token) is not None


def is_literal(token: str) -> bool:
    """Whether a token is a number or a string."""
    return token[:1].isdigit() or (token[:1] in {'"', "'", "`"} and len(token) > 1)


def is_distinctive(text: str) -> bool:
    """Whether a text is distinctive by itself: it has a name of three letters, or a longer string."""
    return any(
        (is_name(token.text) and len(token.text) >= _BRIEF) or (is_literal(token.text) and len(token.text) > _BRIEF)
        for token in tokens(text)
    )


def is_comment(line: str) -> bool:
    """Whether a line looks like a comment or other prose, whose edits are not repeated elsewhere."""
    return _COMMENT.match(line) is not None


def is_import(line: str) -> bool:
    """Whether a line is an import."""
    return _IMPORT.match(line) is not None


class Op(NamedTuple):
    """In `old[first:last]`, tokens of the old line, became `inserted`."""

    first: int
    last: int
    inserted: tuple[str, ...]


@lru_cache(maxsize=512)
def changes(old: tuple[Token, ...], new: tuple[Token, ...]) -> tuple[Op, ...]:
    """The operations that turn one line into another, token by token."""
    one, other = [token.text for token in old], [token.text for token in new]
    found: list[Op] = []
    for low, high, first, last in differences(one, other):
        # Changes separated only by a blank are one change.
        if found and low - found[-1].last == 1 and one[found[-1].last].isspace():
            before = found.pop()
            found.append(Op(before.first, high, (*before.inserted, one[before.last], *other[first:last])))
        else:
            found.append(Op(low, high, tuple(other[first:last])))
    return tuple(found)


# An open placeholder in a string with interpolated code.
_COMPUTED: Final = re.compile(r"[{][^{}]*\Z")


def is_placeholder(before: str) -> bool:
    """Whether a place in a string is in a placeholder, by the text before it: `{total}`."""
    return _COMPUTED.search(before) is not None


def is_quoted(line: str, at: int, names: Names = COMMON) -> bool:
    """Whether a place is in a string or a comment of one line, except in interpolated code: `{total}`, `$total`."""
    for token in tokens(line):
        if token.start <= at < token.end:
            inside = len(token.text) > 1 and token.text[0] in "\"'`"
            if inside and names.interpolated and token.text[0] != "'":
                inside = "$" not in {line[at], line[at - 1]}
            return inside and not is_placeholder(line[token.start : at])
        # After a quote that is not closed on its line, a string continues.
        comment = token.text in {"#", "//"} and (token.start == 0 or line[token.start - 1].isspace())
        if comment or token.text in {'"', "`"} or (token.text == "*" and not line[: token.start].strip()):
            return True
    return False
