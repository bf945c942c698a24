"""Tokens of a line of code, near enough for any language: words, numbers, strings, blanks, punctuation."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""[^\W\d]\w*                            # a name
    | \d(?:[\w.]*\w)?                         # a number
    | "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | `(?:[^`\\]|\\.)*`
    | [ \t]+
    | ===|!==|->|=>|::|:=|==|!=|<=|>=|&&|\|\||\.\.\.|\.\.|\?\.|\*\*|<-|//
    | .""",
    re.VERBOSE | re.DOTALL,
)
_NAME: Final = re.compile(r"[^\W\d]\w*")
_WORDS: Final = re.compile(r"[^\W\d]\w*")
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Words that no rename renames and that stand in many places: of the languages that most code is written in.
_RESERVED: Final = (
    "and as assert async await break case catch class const continue def default defer del do elif else enum except "
    "export extends extern false False final finally fn for from func function global go if impl implements import in "
    "instanceof interface is lambda let match mod mut new nil None nonlocal not null or package "
    "pass private protected pub public raise return self Self static struct super switch this throw throws "
    "trait true True try type typeof undefined unsafe use var void where while with yield cls chan "
)
# Types of these languages: where one took the place of another, that holds for this place.
_TYPES: Final = (
    "int str float bool bytes list dict set tuple string number boolean any byte rune uint char "
    "i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 isize usize int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 "
    "float64 String Vec Option Result Some Ok Err Box"
)
TYPES: Final = frozenset(_TYPES.split())
KEYWORDS: Final = frozenset(_RESERVED.split()) | TYPES
_IMPORT: Final = re.compile(r"\s*(?:import\b|from\s+\S+\s+import\b|(?:pub\s+)?use\s|export\s.*\bfrom\b)")
_BRIEF: Final = 3


class Token(NamedTuple):
    """A token and where it begins in its line."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


@lru_cache(maxsize=8192)
def tokens(line: str) -> tuple[Token, ...]:
    """All tokens of a line; together they are the line. Lines stay the same from one keystroke to the next."""
    return tuple(Token(match.group(), match.start()) for match in _TOKEN.finditer(line))


def words(text: str) -> list[str]:
    """The names and keywords in a text, those in strings and comments too."""
    return _WORDS.findall(text)


def parts(name: str) -> list[str]:
    """`user`, `name` of `user_name`, `userName`, `USER_NAME`."""
    return [part.lower() for part in _PART.findall(name)]


def is_name(token: str) -> bool:
    """Whether a token is a name that a person chose."""
    return _NAME.fullmatch(token) is not None and token not in KEYWORDS


def is_own_word(token: str) -> bool:
    """Whether a token may be a name: those of types may be, such as a parameter `string` or `list`."""
    return is_name(token) or token in TYPES


def is_word(token: str) -> bool:
    """Whether a token is a name or a keyword."""
    return _NAME.fullmatch(token) is not None


def is_literal(token: str) -> bool:
    """Whether a token is a number or a string."""
    return token[:1].isdigit() or (token[:1] in {'"', "'", "`"} and len(token) > 1)


def is_operand(token: str) -> bool:
    """Whether a token may differ between two lines of one shape."""
    return is_literal(token) or is_name(token)


def is_distinctive(text: str) -> bool:
    """Whether a text says by itself what it is about: it has a name of three letters, or a longer string."""
    return any(
        (is_name(token.text) and len(token.text) >= _BRIEF) or (is_literal(token.text) and len(token.text) > _BRIEF)
        for token in tokens(text)
    )


@lru_cache(maxsize=8192)
def shape(line: str) -> str:
    """A line with every name, string and number made equal, so that lines of one shape are one string."""
    return "".join("w" if is_name(text) else "0" if is_literal(text) else text for text, _ in tokens(line.strip()))


def is_prose(line: str) -> bool:
    """Whether a line is a comment or otherwise no code: what was written there once is not repeated elsewhere."""
    return line.lstrip().startswith(("#", "//", "*", "/*", "<!--", '"""', "--")) and not line.lstrip().startswith("#[")


def is_import(line: str) -> bool:
    """Whether a line names what other files have."""
    return _IMPORT.match(line) is not None


class Op(NamedTuple):
    """In `old[first:last]`, tokens of the old line, became `inserted`."""

    first: int
    last: int
    inserted: tuple[str, ...]


@lru_cache(maxsize=512)
def changes(old: tuple[Token, ...], new: tuple[Token, ...]) -> tuple[Op, ...]:
    """What turns one line into another, token by token."""
    one, other = [token.text for token in old], [token.text for token in new]
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    found: list[Op] = []
    for tag, low, high, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        # A blank between two changed tokens makes them no two changes.
        if found and low - found[-1].last == 1 and one[found[-1].last].isspace():
            before = found.pop()
            found.append(Op(before.first, high, (*before.inserted, one[before.last], *other[first:last])))
        else:
            found.append(Op(low, high, tuple(other[first:last])))
    return tuple(found)
