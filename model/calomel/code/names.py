"""Where a name begins and ends in each language, and which words it consists of."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterator
from functools import cache
from pathlib import PurePath
from typing import Final

import regex

from calomel.code.budget import check
from calomel.code.languages import TABLES, Grammar, grammar_of

# Characters of a line. Nobody reads one that is longer, and looking through it often costs the square of its length.
LONGEST_LINE: Final = 2_000
# What is not a number, in any language. The words of `regex` have the marks that their letters carry.
_BEGINS: Final = regex.compile(r"\W*[^\W\d]")


class Names:
    """The names of a language, as the only place that says where they begin and end.

    Attributes:
        interpolated: whether `$name` in a string stands for the variable.
        grammar: that the language's texts are parsed with; None without one.
    """

    def __init__(self, pattern: str, *, interpolated: bool = False, grammar: Grammar | None = None) -> None:
        self.interpolated = interpolated
        self.grammar = grammar
        self._name = regex.compile(pattern)
        self._piece = regex.compile(rf"{pattern}|\X", regex.DOTALL)

    def pieces(self, line: str) -> list[str]:
        """The names of a text, and every character between them; numbers are like names here."""
        return [found[0] for found in self._piece.finditer(line)]

    def is_name(self, text: str) -> bool:
        """Whether a text is one whole name."""
        return self._name.fullmatch(text) is not None and _BEGINS.match(text) is not None

    def ending(self, text: str, offset: int) -> str:
        """The part of a name that stands directly before an offset; empty without one."""
        start = max(text.rfind("\n", 0, offset) + 1, offset - LONGEST_LINE)
        last = deque(self._name.finditer(text, start, offset), 1)
        return last[0][0] if last and last[0].end() == offset else ""

    def going_on(self, text: str, offset: int) -> str:
        """The part of a name behind an offset that lies within it; empty where no name goes on there."""
        start = max(text.rfind("\n", 0, offset) + 1, offset - LONGEST_LINE)
        for match in self._name.finditer(text, start, offset + LONGEST_LINE):
            if match.end() > offset:
                return text[offset : match.end()] if match.start() < offset else ""
        return ""

    def beginning(self, text: str, offset: int) -> str:
        """The name that begins at an offset; empty without one."""
        found = self._name.match(text, offset)
        return "" if found is None else str(found[0])

    def uses(self, text: str, name: str) -> Iterator[regex.Match[str]]:
        """Where a whole name stands, however its accents are encoded, but not as a part of another name.

        Not in lines that are too long to be read. Raises SpentError.

        Where a language writes variables apart from other words, and the name is a variable's, only as such.
        """
        found = list(self._standing(text, name))
        return iter([match for match in found if match.lastgroup] or found)

    def _standing(self, text: str, name: str) -> Iterator[regex.Match[str]]:
        same = unicodedata.normalize("NFC", name)
        forms = {name, same, unicodedata.normalize("NFD", name)}
        at = 0
        while (found := min((place for form in forms if (place := text.find(form, at)) >= 0), default=-1)) >= 0:
            # A line is read from its start, since only that tells where its names begin.
            start, end = text.rfind("\n", 0, found) + 1, text.find("\n", found)
            at = len(text) if end < 0 else end + 1
            check()
            if at - start > LONGEST_LINE:
                continue
            for match in self._name.finditer(text, max(0, start), at):
                if match[0] in forms or unicodedata.normalize("NFC", match[0]) == same:
                    yield match


def names_of(language_id: str | None, path: str | None = None) -> Names:
    """The names of a language; for an unknown id, those of the file name's suffix."""
    by_id, by_suffix = _tables()
    kind = by_id.get(language_id or "")
    if kind is None and path is not None:
        file = PurePath(path)
        kind = by_suffix.get(file.suffix.lower()) or by_suffix.get(file.name.lower())
    return _names(kind or "common", grammar_of(language_id, path))


@cache
def _names(kind: str, grammar: Grammar | None) -> Names:
    table = TABLES["names"][kind]
    return Names(table["pattern"], interpolated=table.get("interpolated", False), grammar=grammar)


@cache
def _tables() -> tuple[dict[str, str], dict[str, str]]:
    """The kind of names of each language, by its id and by the ends of its files."""
    by_id, by_suffix = (
        {each: kind for kind, table in TABLES["names"].items() for each in table.get(column, "").split()}
        for column in ("ids", "suffixes")
    )
    return by_id, by_suffix


COMMON: Final = names_of(None)


def is_word(character: str) -> bool:
    """Whether a character, or none, is part of a word; so are the marks that letters carry."""
    return character.isalnum() or character == "_" or unicodedata.category(character or " ").startswith("M")


_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")


def parts(name: str) -> list[str]:
    """`user`, `name` of `user_name`, `userName`, `USER_NAME`."""
    return [part.lower() for part in _PART.findall(name)]


def spellings(name: str) -> tuple[str, ...]:
    """A name as it is, then as `user_name`, `userName`, `UserName` and `USER_NAME`."""
    pieces = parts(name) or [name]
    upper = "".join(piece.capitalize() for piece in pieces)
    lower = "_".join(pieces)
    return name, lower, pieces[0] + upper[len(pieces[0]) :], upper, lower.upper()
