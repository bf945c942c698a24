"""Sets values in JSON with comments, and leaves every other character as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from calomel.cli.editors.jsonc_tree import JsoncError, Value, parse

_INDENT: Final = re.compile(r"[ \t]*\Z")


def with_values(text: str, values: Mapping[str, Any], unit: str = "  ") -> str:
    """`text` with `values` merged into it: objects member by member, anything else replaced.

    Args:
        text: an object, with or without comments, or nothing.
        values: what shall stand in it.
        unit: one step of indentation where the text does not show its own.

    Raises:
        JsoncError: the text is no object, so nothing can be set in it.
    """
    root = parse(text)
    if root is None:
        end = _line_end(text)
        head = text if not text.strip() or text.endswith("\n") else text + end
        return f"{head}{{}}{end}" if not values else with_values(f"{head}{{}}{end}", values, unit)
    if root.members is None:
        raise JsoncError("line 1: the settings are no object")
    own = _indent_at(text, root.members[0].start) if root.members else None
    for path, value in _leaves(values):
        text = _with_value(text, path, value, own or unit)
    return text


def _leaves(values: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    found: list[tuple[tuple[str, ...], Any]] = []
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            found += _leaves(value, (*path, key))
        else:
            found.append(((*path, key), value))
    return found


def _with_value(text: str, path: Sequence[str], value: Any, unit: str) -> str:
    holder = parse(text)
    for depth, key in enumerate(path):
        if holder is None or holder.members is None:
            break
        member = holder.member(key)
        rest = path[depth + 1 :]
        if member is None:
            return _inserted(text, holder, key, _nested(rest, value), unit)
        if not rest:
            return _replaced(text, member.value, value, unit)
        if member.value.members is None:
            return _replaced(text, member.value, _nested(rest, value), unit)
        holder = member.value
    raise JsoncError("line 1: the settings are no object")


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _replaced(text: str, old: Value, value: Any, unit: str) -> str:
    try:
        same = bool(json.loads(text[old.start : old.end]) == value)
    except ValueError:
        same = False
    if same:
        return text
    line = text[text.rfind("\n", 0, old.start) + 1 : old.start]
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    return text[: old.start] + _written(value, indent, unit, _line_end(text)) + text[old.end :]


def _inserted(text: str, holder: Value, key: str, value: Any, unit: str) -> str:
    """A member behind the last one; its line end comes before it, so that no comment can swallow it."""
    end = _line_end(text)
    brace = holder.end - 1
    members = holder.members or ()
    comma = "," if members and not holder.comma else ""
    inner = text[holder.start + 1 : brace]
    if members and "\n" not in inner:
        # All on one line: it stays so.
        told = f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        blank = inner[len(inner.rstrip()) :]
        more = "," if holder.comma else ""
        return f"{text[: holder.last]}{comma}{text[holder.last : brace - len(blank)]} {told}{more}{blank}{text[brace:]}"
    outer = _indent_of_line(text, brace if "\n" in inner else holder.start)
    indent = _indent_at(text, members[-1].start) if members else None
    indent = outer + unit if indent is None else indent
    written = _written(value, indent, unit, end)
    told = f"{end}{indent}{json.dumps(key, ensure_ascii=False)}: {written}{',' if holder.comma else ''}{end}{outer}"
    kept = text[holder.last : brace].rstrip()
    return f"{text[: holder.last]}{comma}{kept}{told}{text[brace:]}"


def _written(value: Any, indent: str, unit: str, end: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", end + indent)


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_at(text: str, at: int) -> str | None:
    """The blanks before a place; None when something else stands there."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line if _INDENT.match(line) else None


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
