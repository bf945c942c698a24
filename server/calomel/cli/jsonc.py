"""JSON as editors write their settings, with comments and trailing commas: read and changed in place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

# Strings first: what looks like a comment or a comma inside one is none.
_STRING: Final = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT: Final = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
# Nor is a comma right after an opening bracket a trailing one.
_COMMA: Final = re.compile(_STRING + r"|[{\[]\s*,|,(?=\s*[}\]])")
_NO_LINE_END: Final = re.compile(r"[^\r\n]")
_DECODER: Final = json.JSONDecoder()


class _Member(NamedTuple):
    """A member of an object: where its key is, and where its value begins and ends."""

    at: int
    begin: int
    end: int


def loads(text: str) -> Any:
    """The value in `text`. Raises ValueError."""
    return json.loads(_plain(text))


def with_values(text: str, values: Mapping[str, Any], unit: str = "  ") -> str:
    """`text` with `values` merged into it: objects member by member, anything else replaced; the rest stays unchanged.

    Args:
        text: an object, with or without comments, or nothing.
        values: the values to set.
        unit: one step of indentation, if the text does not show its own.

    Raises:
        ValueError: the text is not an object, so nothing can be set in it; the message names the line.
    """
    if not _plain(text).strip():
        end = _line_end(text)
        text = f"{text}{end if text.strip() and not text.endswith(end) else ''}{{}}{end}"
    if not isinstance(loads(text), dict):
        raise ValueError("line 1: the settings are not an object")  # noqa: TRY004 (what is wrong is a file)
    start = _beyond_blanks(_plain(text), 0)
    first = min(_members(text, start).values(), default=None)
    own = None if first is None else _indent(text, first.at)
    return _merged(text, start, values, own or unit)


def _plain(text: str) -> str:
    """`text` as plain JSON: spaces in place of comments and extra commas, so that every offset stays valid."""
    text = text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text
    bare = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else _NO_LINE_END.sub(" ", match[0]), text)
    return _COMMA.sub(lambda match: " " if match[0] == "," else match[0], bare)


def _members(text: str, start: int) -> dict[str, _Member]:
    """The members of the object whose brace is at `start`; of several with one name the last, which counts."""
    plain = _plain(text)
    found: dict[str, _Member] = {}
    at = _beyond_blanks(plain, start + 1)
    while plain[at] != "}":
        key, end = _DECODER.raw_decode(plain, at)
        begin = _beyond_blanks(plain, _beyond_blanks(plain, end) + 1)
        end = _DECODER.raw_decode(plain, begin)[1]
        found.pop(key, None)
        found[key] = _Member(at, begin, end)
        at = _beyond_blanks(plain, end)
        if plain[at] == ",":
            at = _beyond_blanks(plain, at + 1)
    return found


def _merged(text: str, start: int, values: Mapping[str, Any], unit: str) -> str:
    # New members are inserted at the front, the last one first.
    for key, value in reversed(list(values.items())):
        member = _members(text, start).get(key)
        if member is None:
            text = _inserted(text, start, key, value, unit)
        elif isinstance(value, Mapping) and value and text[member.begin] == "{":
            text = _merged(text, member.begin, value, unit)
        elif loads(text[member.begin : member.end]) != value:
            written = _written(value, _indent_of_line(text, member.begin), unit, text)
            text = text[: member.begin] + written + text[member.end :]
    return text


def _inserted(text: str, start: int, key: str, value: Any, unit: str) -> str:
    """Insert a member before the others, on its own line unless they share one with the brace."""
    first = min(_members(text, start).values(), default=None)
    name = json.dumps(key, ensure_ascii=False)
    if first is not None and "\n" not in text[start : first.at]:
        told = f"{name}: {json.dumps(value, ensure_ascii=False)}, "
        return text[: first.at] + told + text[first.at :]
    outer, end, rest = _indent_of_line(text, start), _line_end(text), text[start + 1 :]
    indent = outer + unit if first is None else _indent(text, first.at) or outer + unit
    told = f"{end}{indent}{name}: {_written(value, indent, unit, text)}"
    if first is not None:
        told += ","
    elif "\n" not in rest.partition("}")[0]:
        told += end + outer
    return text[: start + 1] + told + rest


def _written(value: Any, indent: str, unit: str, text: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", _line_end(text) + indent)


def _beyond_blanks(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _indent(text: str, at: int) -> str | None:
    """The spaces before a place; None when there is something else."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return None if line.strip() else line


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
