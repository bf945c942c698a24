r"""The lines around a place of a text, never more of them than a filter looks at.

A line ends at \n, \r\n or \r and at nothing else, unlike in `str.splitlines`.
"""

from __future__ import annotations

import re
from typing import Final

LINE_END: Final = re.compile(r"\r\n|\r|\n")
# Characters. A line beyond this is no line that anybody reads, and what is further away is no neighbour.
_WINDOW: Final = 1600


def split_lines(text: str) -> list[str]:
    """The lines without their ends; one empty one behind the last line end."""
    return LINE_END.split(text)


def head_of(text: str, offset: int) -> str:
    """The line of `offset`, up to it."""
    least = max(0, offset - _WINDOW)
    return text[max(text.rfind("\n", least, offset), text.rfind("\r", least, offset), least - 1) + 1 : offset]


def rest_of(text: str, offset: int) -> str:
    """The line of `offset`, from it on, without its end."""
    ending = LINE_END.search(text, offset, offset + _WINDOW)
    return text[offset : ending.start() if ending else offset + _WINDOW]


def above(text: str, offset: int) -> list[str]:
    """The lines above the one of `offset`, as far as they are near; the nearest is the last."""
    start = offset - len(head_of(text, offset))
    return split_lines(text[max(0, start - _WINDOW) : start])[:-1]


def below(text: str, offset: int) -> list[str]:
    """The lines below the one of `offset`, as far as they are near."""
    end = offset + len(rest_of(text, offset))
    return split_lines(text[end : end + _WINDOW])[1:]


def filled(lines: list[str], most: int | None = None) -> list[str]:
    """Those lines that are not blank, without the space around them."""
    found: list[str] = []
    for line in lines:
        if len(found) == most:
            break
        if stripped := line.strip():
            found.append(stripped)
    return found
