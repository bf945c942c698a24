"""JSON as editors write their settings, with comments and commas before closing brackets: read and changed in place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

# Strings first: what looks like a comment or a comma inside of one is none.
_STRING: Final = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT: Final = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
# A comma that nothing stands before is none either.
_COMMA: Final = re.compile(_STRING + r"|[{\[]\s*,|,(?=\s*[}\]])")
_NO_LINE_END: Final = re.compile(r"[^\r\n]")
_INDENT: Final = re.compile(r"[ \t]*\Z")
_DECODER: Final = json.JSONDecoder()


class JsoncError(ValueError):
    """The text is no object, even with comments; the message says in which line."""


@dataclass(frozen=True, slots=True)
class _Object:
    """An object, by offsets into the text.

    Attributes:
        start: of its brace.
        end: behind its other brace.
        members: key, place of the key, and value; one that is no object is told by its start and end.
        last: where the last member, or the comma behind it, ends; of an empty object where it begins, behind the brace.
        comma: behind the last member.
    """

    start: int
    end: int
    members: tuple[tuple[str, int, _Object | slice], ...]
    last: int
    comma: bool

    def member(self, key: str) -> _Object | slice | None:
        """The value of this name; of several the last, which is the one that counts."""
        return next((value for name, _, value in reversed(self.members) if name == key), None)


def loads(text: str) -> Any:
    """The value in `text`. Raises ValueError."""
    return json.loads(_without_commas(_without_comments(text)))


def with_values(text: str, values: Mapping[str, Any], unit: str = "  ") -> str:
    """`text` with `values` merged into it: objects member by member, anything else replaced; all else stays as it is.

    Args:
        text: an object, with or without comments, or nothing.
        values: what shall stand in it.
        unit: one step of indentation where the text does not show its own.

    Raises:
        JsoncError: the text is no object, so nothing can be set in it.
    """
    if not _without_comments(text).strip():
        end = _line_end(text)
        head = text if not text.strip() or text.endswith("\n") else text + end
        return f"{head}{{}}{end}" if not values else with_values(f"{head}{{}}{end}", values, unit)
    root = _root(text)
    own = _indent_at(text, root.members[0][1]) if root.members else None
    for path, value in _leaves(values):
        text = _with_value(text, path, value, own or unit)
    return text


def _without_comments(text: str) -> str:
    """`text` with blanks in the place of comments, so that every offset stays."""
    text = text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text
    return _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else _NO_LINE_END.sub(" ", match[0]), text)


def _without_commas(text: str) -> str:
    return _COMMA.sub(lambda match: " " if match[0] == "," else match[0], text)


def _root(text: str) -> _Object:
    bare = _without_comments(text)
    plain = _without_commas(bare)
    try:
        json.loads(plain)
    except json.JSONDecodeError as error:
        raise JsoncError(f"line {error.lineno}: {error.msg}") from None
    start = _beyond_blanks(plain, 0)
    if plain[start] != "{":
        raise JsoncError("line 1: the settings are no object")
    return _object(plain, bare, start)


def _object(plain: str, bare: str, start: int) -> _Object:
    """The object that begins at `start` of sound JSON; `bare` is the same with commas before closing brackets."""
    members: list[tuple[str, int, _Object | slice]] = []
    last = start + 1
    at = _beyond_blanks(plain, last)
    while plain[at] != "}":
        key, end = _DECODER.raw_decode(plain, at)
        begin = _beyond_blanks(plain, _beyond_blanks(plain, end) + 1)
        if plain[begin] == "{":
            value: _Object | slice = _object(plain, bare, begin)
            last = value.end if isinstance(value, _Object) else begin
        else:
            last = _DECODER.raw_decode(plain, begin)[1]
            value = slice(begin, last)
        members.append((key, at, value))
        at = _beyond_blanks(plain, last)
        if plain[at] == ",":
            at = _beyond_blanks(plain, at + 1)
    comma = bare.find(",", last, at)
    return _Object(start, at + 1, tuple(members), last if comma < 0 else comma + 1, comma >= 0)


def _beyond_blanks(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _leaves(values: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _with_value(text: str, path: Sequence[str], value: Any, unit: str) -> str:
    holder = _root(text)
    for depth, key in enumerate(path):
        rest = path[depth + 1 :]
        member = holder.member(key)
        if rest and isinstance(member, _Object):
            holder = member
            continue
        for name in reversed(rest):
            value = {name: value}
        if member is None:
            return _inserted(text, holder, key, value, unit)
        return _replaced(text, member.start, member.stop if isinstance(member, slice) else member.end, value, unit)
    return text


def _replaced(text: str, start: int, end: int, value: Any, unit: str) -> str:
    try:
        same = bool(json.loads(text[start:end]) == value)
    except ValueError:
        same = False
    return text if same else text[:start] + _written(value, _indent_of_line(text, start), unit, text) + text[end:]


def _inserted(text: str, holder: _Object, key: str, value: Any, unit: str) -> str:
    """A member behind the last one; its line end comes before it, so that no comment can swallow it."""
    brace = holder.end - 1
    comma = "," if holder.members and not holder.comma else ""
    more = "," if holder.comma else ""
    name = json.dumps(key, ensure_ascii=False)
    inner = text[holder.start + 1 : brace]
    if holder.members and "\n" not in inner:
        # All on one line: it stays so.
        told = f"{name}: {json.dumps(value, ensure_ascii=False)}{more}"
        blank = inner[len(inner.rstrip()) :]
        return f"{text[: holder.last]}{comma}{text[holder.last : brace - len(blank)]} {told}{blank}{text[brace:]}"
    outer = _indent_of_line(text, brace if "\n" in inner else holder.start)
    indent = _indent_at(text, holder.members[-1][1]) if holder.members else None
    indent = outer + unit if indent is None else indent
    end = _line_end(text)
    told = f"{end}{indent}{name}: {_written(value, indent, unit, text)}{more}{end}{outer}"
    return f"{text[: holder.last]}{comma}{text[holder.last : brace].rstrip()}{told}{text[brace:]}"


def _written(value: Any, indent: str, unit: str, text: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", _line_end(text) + indent)


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_at(text: str, at: int) -> str | None:
    """The blanks before a place; None when something else stands there."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line if _INDENT.match(line) else None


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
