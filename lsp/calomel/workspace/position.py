"""Positions of the Language Server Protocol, and columns in code points."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Encoding(StrEnum):
    """The unit in which a client counts characters (LSP 3.17, PositionEncodingKind)."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


class Position(NamedTuple):
    """A place in a document; `character` counts units of an `Encoding`."""

    line: int
    character: int


_LAST_BMP: Final = 0xFFFF


def units(text: str, encoding: Encoding) -> int:
    """How many units of `encoding` the text has. A lone surrogate counts as one character."""
    if encoding is Encoding.UTF32 or text.isascii():
        return len(text)
    if encoding is Encoding.UTF16:
        return len(text) + sum(ord(character) > _LAST_BMP for character in text)
    return len(text.encode("utf-8", "surrogatepass"))


def column(line: str, character: int, encoding: Encoding) -> int:
    """The column, in code points, of the unit `character` in `line` (without line end).

    Beyond the end of the line it is the end, as the specification says; inside of a character it is its start.
    """
    if character <= 0:
        return 0
    if encoding is Encoding.UTF32 or line.isascii():
        return min(character, len(line))
    seen = 0
    for index, each in enumerate(line):
        seen += units(each, encoding)
        if seen > character:
            return index
    return len(line)
