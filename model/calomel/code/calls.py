"""Parenthesised lists of a text in any language, complete or not: arguments and parameters, and edits of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from calomel.code.budget import check
from calomel.code.scan import CLOSING

_QUOTES: Final = "\"'`"
# After the parameters of a function without a name.
ARROW: Final = re.compile(r"\s*(?::[^={;]*)?=>")
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
        check()
        found = read_list(text, match.end() - 1, match.group(1), match.start())
        bound = match.group().rstrip("(").rstrip().endswith(("=", "async"))
        if found is not None and (not bound or ARROW.match(text, found.end + 1)):
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
