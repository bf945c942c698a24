"""Lines, tokens and lists of a text in any language, for all makers of drafts.

`Rows` finds lines and names, `tokens` splits a line into words and marks, `changes` compares two lines token by token,
and `calls` and `read_list` parse lists in brackets. No grammar is needed, so code may be incomplete.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, NamedTuple

import regex

from calomel.code.names import COMMON, Names
from calomel.suggest.edit import split_lines


class Rows:
    """The lines of a text, counted from 0; a text that ends with a line end has an empty last line after it."""

    def __init__(self, text: str, names: Names = COMMON) -> None:
        self.text = text
        self.names = names
        whole = split_lines(text)
        if not whole or whole[-1].endswith(("\n", "\r")):
            whole.append("")
        self.lines = [line.rstrip("\r\n") for line in whole]
        self._starts = [0]
        for line in whole:
            self._starts.append(self._starts[-1] + len(line))
        self.line_end = whole[0][len(self.lines[0]) :] or "\n"

    def __len__(self) -> int:
        return len(self.lines)

    def start(self, row: int) -> int:
        """Where a line starts; the end of the text for the line after the last."""
        return self._starts[min(row, len(self.lines))]

    def end(self, row: int) -> int:
        """Where a line ends, before its line end."""
        return self._starts[row] + len(self.lines[row])

    def row(self, offset: int) -> int:
        """The line of `offset`."""
        return max(0, min(bisect_right(self._starts, offset) - 1, len(self.lines) - 1))

    def before(self, offset: int) -> str:
        """The text of the line before `offset`."""
        return self.text[self.start(self.row(offset)) : offset]

    def behind(self, offset: int) -> str:
        """The rest of the line from `offset` on."""
        return self.text[offset : self.end(self.row(offset))]

    def uses(self, name: str) -> Iterator[regex.Match[str]]:
        """The occurrences of a whole name."""
        return self.names.uses(self.text, name)

    def opening(self, before: int, low: int) -> int | None:
        """Where the innermost unclosed bracket in `low:before` is; None without one."""
        depth = 0
        for at in range(before - 1, low - 1, -1):
            character = self.text[at]
            if character in ")]}":
                depth += 1
            elif character in "([{":
                if depth == 0:
                    return at
                depth -= 1
        return None

    def find(self, block: Sequence[str], near: int) -> int | None:
        """The row at which these lines start, the nearest to `near`; None if they do not occur."""
        if not block:
            return None
        first, size = block[0], len(block)
        found = [
            row
            for row, line in enumerate(self.lines)
            if line == first and (size == 1 or self.lines[row : row + size] == list(block))
        ]
        return min(found, key=lambda row: abs(row - near), default=None)


def indent_of(line: str) -> str:
    """The blanks at the start of a line."""
    return line[: len(line) - len(line.lstrip())]


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
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Words of the most common languages that are never renamed and occur in many places.
_RESERVED: Final = (
    "and as assert async await break case catch class const continue def default defer del do elif else enum except "
    "export extends extern false False final finally fn for from func function global go if impl implements import in "
    "instanceof interface is lambda let match mod mut new nil None nonlocal not null or package "
    "pass private protected pub public raise return self Self static struct super switch this throw throws "
    "trait true True try type typeof undefined unsafe use var void where while with yield cls chan "
)
# Types of these languages: replacing one by another only concerns that place.
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
    """A token and where it starts in its line."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


@lru_cache(maxsize=4096)
def tokens(line: str) -> tuple[Token, ...]:
    """All tokens of a line, blanks included. Cached, since most lines do not change between keystrokes."""
    return tuple(Token(match.group(), match.start()) for match in _TOKEN.finditer(line))


def words(text: str) -> list[str]:
    """The names and keywords in a text, including strings and comments."""
    found: list[str] = _NAME.findall(text)
    return found


def parts(name: str) -> list[str]:
    """`user`, `name` of `user_name`, `userName`, `USER_NAME`."""
    return [part.lower() for part in _PART.findall(name)]


def spellings(name: str) -> tuple[str, ...]:
    """A name as it is, then as `user_name`, `userName`, `UserName` and `USER_NAME`."""
    pieces = parts(name) or [name]
    upper = "".join(piece.capitalize() for piece in pieces)
    lower = "_".join(pieces)
    return name, lower, pieces[0] + upper[len(pieces[0]) :], upper, lower.upper()


def respelled(text: str, names: Mapping[str, str]) -> str:
    """A name with a word renamed as in `names`, in whatever spelling it occurs."""
    for old, new in names.items():
        for one, other in zip(spellings(old), spellings(new), strict=True):
            at = text.find(one)
            if len(one) > 1 and at >= 0 and _is_word_of(text, at, at + len(one)):
                return text[:at] + other + text[at + len(one) :]
    return text


def _is_word_of(text: str, start: int, end: int) -> bool:
    """Whether a part of a name is a whole word in it: `user` in `user_name` and `User` in `getUser`."""
    before, first = text[start - 1 : start], text[start : start + 1]
    last, after = text[end - 1 : end], text[end : end + 1]
    begins = not before.isalnum() or (before.islower() and first.isupper())
    return begins and (not after.isalnum() or (last.islower() and after.isupper()))


def is_name(token: str) -> bool:
    """Whether a token is a name that a person chose."""
    return _NAME.fullmatch(token) is not None and token not in KEYWORDS


def is_word(token: str) -> bool:
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


def is_prose(line: str) -> bool:
    """Whether a line is a comment or other prose, whose edits are not repeated elsewhere."""
    return line.lstrip().startswith(("#", "//", "*", "/*", "<!--", '"""', "--")) and not line.lstrip().startswith("#[")


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
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    found: list[Op] = []
    for tag, low, high, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        # Changes separated only by a blank are one change.
        if found and low - found[-1].last == 1 and one[found[-1].last].isspace():
            before = found.pop()
            found.append(Op(before.first, high, (*before.inserted, one[before.last], *other[first:last])))
        else:
            found.append(Op(low, high, tuple(other[first:last])))
    return tuple(found)


CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_QUOTES: Final = "\"'`"
_ARROW: Final = re.compile(r"\s*(?::[^={;]*)?=>")
# Types between angle brackets, nested up to three deep.
_GENERIC: Final = re.compile(r"<(?:[\w\s,:&'.*?|\[\]]|<(?:[\w\s,:&'.*?|\[\]]|<[^<>()]*>)*>)*>")
# Nobody edits a longer argument list by hand.
_LONGEST: Final = 2000


@dataclass(frozen=True, slots=True)
class Listed:
    """A list and the name before its bracket.

    Attributes:
        name: what is called or defined; empty for a list without one.
        name_start: where the name begins.
        start: after the opening bracket.
        end: of the closing bracket.
        items: spans of the items without the blanks around them.
    """

    name: str
    name_start: int
    start: int
    end: int
    items: tuple[tuple[int, int], ...]

    def texts(self, text: str) -> list[str]:
        """The texts of the items."""
        return [text[low:high] for low, high in self.items]


def calls(text: str, name: str | None = None) -> Iterator[Listed]:
    """Parenthesised lists after a name, or after `name`; also of a function that is bound to a name."""
    pattern = r"[^\W\d]\w*" if name is None else rf"(?<![\w$]){re.escape(name)}"
    for match in re.finditer(rf"({pattern})(?:\s?(?:::)?(?:<[\w, :&']*>)?!?|\s*=\s*(?:async\s*)?)\(", text):
        found = read_list(text, match.end() - 1, match.group(1), match.start())
        bound = match.group().rstrip("(").rstrip().endswith(("=", "async"))
        if found is not None and (not bound or _ARROW.match(text, found.end + 1)):
            yield found


def read_list(text: str, bracket: int, name: str = "", name_start: int | None = None) -> Listed | None:
    """The list that opens at `bracket`; None if it does not close."""
    closing = [CLOSING[text[bracket]]]
    at = bracket + 1
    items: list[tuple[int, int]] = []
    first = at
    limit = min(len(text), bracket + _LONGEST)
    while at < limit:
        character = text[at]
        if character in _QUOTES:
            at = _string_end(text, at, limit)
            continue
        generic = _GENERIC.match(text, at) if character == "<" and text[at - 1].isalnum() else None
        if generic is not None:
            at = generic.end()
            continue
        if character in CLOSING:
            closing.append(CLOSING[character])
        elif character == closing[-1]:
            closing.pop()
            if not closing:
                _add(items, text, first, at)
                return Listed(name, bracket if name_start is None else name_start, bracket + 1, at, tuple(items))
        elif character in ")]}":
            return None
        elif character == "," and len(closing) == 1:
            _add(items, text, first, at)
            first = at + 1
        at += 1
    return None


def _add(items: list[tuple[int, int]], text: str, first: int, end: int) -> None:
    inner = text[first:end]
    stripped = inner.strip()
    if stripped:
        start = first + len(inner) - len(inner.lstrip())
        items.append((start, start + len(stripped)))


def _string_end(text: str, at: int, limit: int) -> int:
    """The end of the string at `at`; a quote that is not closed on its line is a lifetime or an apostrophe."""
    quote = text[at]
    end = at + 1
    while end < limit:
        character = text[end]
        if character == "\\":
            end += 2
            continue
        if character == quote:
            return end + 1
        if character == "\n" and quote != "`":
            break
        end += 1
    return at + 1


def inserted(text: str, found: Listed, index: int, item: str) -> tuple[int, int, str]:
    """The edit that inserts `item` at `index`, with the separator of the others."""
    if not found.items:
        return found.start, found.end, item
    if index >= len(found.items):
        end = found.items[-1][1]
        return end, end, _separator(text, found, len(found.items) - 1) + item
    start = found.items[index][0]
    return start, start, item + _separator(text, found, index)


def removed(found: Listed, index: int) -> tuple[int, int, str]:
    """The edit that removes an item with its comma."""
    start, end = found.items[index]
    if index + 1 < len(found.items):
        return start, found.items[index + 1][0], ""
    if index:
        return found.items[index - 1][1], end, ""
    return start, end, ""


def _separator(text: str, found: Listed, index: int) -> str:
    if len(found.items) > 1:
        at = max(1, min(index, len(found.items) - 1))
        between = text[found.items[at - 1][1] : found.items[at][0]]
        if between.strip() == ",":
            return between
    first = found.items[0][0]
    before = text[found.start : first]
    return "," + (before if "\n" in before else " ")


# An open placeholder in a string with interpolated code.
_COMPUTED: Final = re.compile(r"[{][^{}]*\Z")


def is_quoted(line: str, at: int, names: Names = COMMON) -> bool:
    """Whether a place is in a string or a comment of one line, except in interpolated code: `{total}`, `$total`."""
    for token in tokens(line):
        if token.start <= at < token.end:
            inside = len(token.text) > 1 and token.text[0] in "\"'`"
            if inside and names.interpolated and token.text[0] != "'":
                inside = "$" not in {line[at], line[at - 1]}
            return inside and _COMPUTED.search(line[token.start : at]) is None
        # After a quote that is not closed on its line, a string continues.
        comment = token.text in {"#", "//"} and (token.start == 0 or line[token.start - 1].isspace())
        if comment or token.text in {'"', "`"} or (token.text == "*" and not line[: token.start].strip()):
            return True
    return False
