"""The slow and obvious way to keep a document: one string, positions counted character by character."""

from __future__ import annotations


def lines_of(text: str) -> list[tuple[int, int]]:
    """Start of each line, and where its content ends."""
    found, start, at = [], 0, 0
    while at < len(text):
        if text[at] in "\r\n":
            width = 2 if text[at : at + 2] == "\r\n" else 1
            found.append((start, at))
            at += width
            start = at
        else:
            at += 1
    found.append((start, len(text)))
    return found


def width(character: str) -> int:
    return 2 if ord(character) > 0xFFFF else 1


def offset_of(text: str, line: int, character: int) -> int:
    found = lines_of(text)
    if line >= len(found):
        return len(text)
    start, end = found[line]
    at, seen = start, 0
    while at < end and seen + width(text[at]) <= character:
        seen += width(text[at])
        at += 1
    return at


def position_of(text: str, offset: int) -> tuple[int, int]:
    found = lines_of(text)
    number = max(index for index, (start, _) in enumerate(found) if start <= offset)
    start = found[number][0]
    return number, sum(map(width, text[start:offset]))
