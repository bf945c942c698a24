"""What the assistant of a recording offered: from a request's answer to edits of the text on the screen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from calomel.replay.events import Edit
from calomel.replay.units import code_point_offset

# Lines and columns from 1, columns in UTF-16 units.
_RANGE: Final = re.compile(r"\[(\d+),(\d+) -> (\d+),(\d+)\]")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Fetch:
    """A request that was sent.

    Attributes:
        document: its number in the log.
        version: of the text it was for.
        time: seconds from the start of the log.
    """

    document: int
    version: int | None
    time: float


@dataclass(frozen=True, slots=True)
class Answer:
    """One suggestion of an answer."""

    edit: Edit
    source: str
    inline_edit: bool


def answer_of(text: str, result: Mapping[str, Any]) -> Answer:
    """One suggestion; raises ValueError when it does not fit the text, KeyError or TypeError when it is none."""
    found = _RANGE.fullmatch(result["range"])
    if found is None:
        raise ValueError(f"its range is {result['range']!r}")
    first_line, first_column, last_line, last_column = map(int, found.groups())
    start = _offset(text, first_line, first_column)
    end = _offset(text, last_line, last_column)
    new = result["text"]
    if start > end or not isinstance(new, str):
        raise ValueError(f"its range is {result['range']!r}, its text {type(new).__name__}")
    return Answer(Edit(start, end, new), str(result.get("source") or ""), bool(result.get("isInlineEdit")))


def _offset(text: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        found = _LINE_END.search(text, start)
        if found is None:
            raise ValueError(f"the text has no line {line}")
        start = found.end()
    ending = _LINE_END.search(text, start)
    content = text[start : ending.start() if ending else len(text)]
    try:
        return start + code_point_offset(content, column - 1)
    except ValueError as error:
        raise ValueError(f"line {line} has no column {column}") from error
