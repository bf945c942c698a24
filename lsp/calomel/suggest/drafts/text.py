"""Which lines belong together, by indentation and the words that functions begin with; no grammar needed."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, NamedTuple

from calomel.suggest.edit import split_lines


class Rows:
    """Lines count from 0; a text that ends with a line end has an empty last line behind it."""

    def __init__(self, text: str) -> None:
        self.text = text
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
        """Where a line begins; the end of the text behind the last one."""
        return self._starts[min(row, len(self.lines))]

    def end(self, row: int) -> int:
        """Where a line ends, before its line end."""
        return self._starts[row] + len(self.lines[row])

    def row(self, offset: int) -> int:
        """The line that `offset` lies in."""
        return max(0, min(bisect_right(self._starts, offset) - 1, len(self.lines) - 1))

    def opening(self, before: int, low: int) -> int | None:
        """Where the innermost bracket is that was opened in `low:before` and not closed there; None without one."""
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
        """The row at which these lines stand, the nearest to `near`; None when they do not."""
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
    """The blanks that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


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


_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_QUOTES: Final = "\"'`"
# An argument list that is longer is none that anybody edits by hand.
_LONGEST: Final = 2000


@dataclass(frozen=True, slots=True)
class Listed:
    """A list with what stands before its bracket.

    Attributes:
        name: what is called or defined; empty for a list without one.
        name_start: where the name begins.
        start: behind the opening bracket.
        end: of the closing bracket.
        items: spans of the items without the blanks around them.
    """

    name: str
    name_start: int
    start: int
    end: int
    items: tuple[tuple[int, int], ...]

    def texts(self, text: str) -> list[str]:
        """The items."""
        return [text[low:high] for low, high in self.items]


def calls(text: str, name: str | None = None) -> Iterator[Listed]:
    """Parenthesised lists behind a name, or behind this name."""
    pattern = r"[^\W\d]\w*" if name is None else rf"(?<![\w$]){re.escape(name)}"
    for match in re.finditer(rf"({pattern})\s?(?:::)?(?:<[\w, :&']*>)?!?\(", text):
        found = read_list(text, match.end() - 1, match.group(1), match.start())
        if found is not None:
            yield found


def read_list(text: str, bracket: int, name: str = "", name_start: int | None = None) -> Listed | None:
    """The list that opens at `bracket`; None when it does not close."""
    closing = [_CLOSING[text[bracket]]]
    at = bracket + 1
    items: list[tuple[int, int]] = []
    first = at
    limit = min(len(text), bracket + _LONGEST)
    while at < limit:
        character = text[at]
        if character in _QUOTES:
            at = _string_end(text, at, limit)
            continue
        if character in _CLOSING:
            closing.append(_CLOSING[character])
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
    """Behind the string that begins at `at`; a quote that its line never closes is a lifetime or an apostrophe."""
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
    """The edit that makes `item` the item number `index`, separated as the others are."""
    if not found.items:
        return found.start, found.end, item
    if index >= len(found.items):
        end = found.items[-1][1]
        return end, end, _separator(text, found, len(found.items) - 1) + item
    start = found.items[index][0]
    return start, start, item + _separator(text, found, index)


def removed(found: Listed, index: int) -> tuple[int, int, str]:
    """The edit that takes an item out, with its comma."""
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
