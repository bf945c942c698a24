"""The current file around the window, as it was at one moment. Later changes reach the model as edits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.context.counter import TokenCounter
from calomel.context.window import Window
from calomel.workspace.documents import common_prefix

# A snapshot of which more than this was rewritten misleads more than its cached tokens save.
_REWRITTEN: Final = 0.25
_CHARACTERS: Final = 5
_BLOCK_REACH: Final = 12


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Whole lines of the file.

    Attributes:
        start_line, end_line: lines [start_line, end_line) at that moment.
        start: offset of `start_line` at that moment.
        base: the whole file at that moment.
    """

    text: str
    start_line: int
    end_line: int
    start: int
    base: str

    def serves(self, text: str, window: Window) -> bool:
        """Whether the snapshot still tells what is around the window."""
        if self.base is text:
            return self._holds(window.start, window.end)
        low, high, new_high = changed(self.base, text)
        start, end = (at if at <= low else max(low, at - new_high + high) for at in (window.start, window.end))
        return self._holds(start, end) and self._lost(text) <= _REWRITTEN

    def _holds(self, start: int, end: int) -> bool:
        return self.start <= start and end <= self.start + len(self.text)

    def _lost(self, text: str) -> float:
        """The share of the snapshot's lines that are nowhere in the text any more."""
        lines = self.text.splitlines()
        now = set(text.splitlines())
        return sum(line not in now for line in lines) / max(1, len(lines))


def take(text: str, window: Window, room: int, counter: TokenCounter, blocks: Sequence[int]) -> Snapshot:
    """The lines around the window that fit into `room` tokens, twice as many above as below, cut at blocks.

    The window is part of it, so that the window can move without the snapshot changing.
    """
    if len(text) <= room * _CHARACTERS and counter.text(text) <= room:
        return Snapshot(text, 0, _lines(text), 0, text)
    middle = (window.start + window.end) // 2
    size = room * _CHARACTERS
    while True:
        start = max(0, min(middle - size * 2 // 3, len(text) - size))
        start = _block_start(text, start, blocks)
        end = _line_end(text, start + size)
        piece = text[start:end]
        count = counter.text(piece)
        if count <= room or size <= _CHARACTERS:
            first = text.count("\n", 0, start)
            return Snapshot(piece, first, first + _lines(piece), start, text)
        size = min(size - _CHARACTERS, int(size * room / count * 0.97))


def changed(old: str, new: str) -> tuple[int, int, int]:
    """The span of `old` that became another one in `new`: (start, end, new end)."""
    prefix = common_prefix(old, new)
    suffix = common_prefix(old[prefix:][::-1], new[prefix:][::-1])
    return prefix, len(old) - suffix, len(new) - suffix


def _block_start(text: str, start: int, blocks: Sequence[int]) -> int:
    """The start of a line at or behind `start`; of a block, if one begins within a few lines."""
    if start == 0:
        return 0
    start = text.find("\n", start - 1) + 1 or len(text)
    line = text.count("\n", 0, start)
    index = bisect_left(blocks, line)
    if index < len(blocks) and blocks[index] - line <= _BLOCK_REACH:
        for _ in range(blocks[index] - line):
            start = text.find("\n", start) + 1
    return start


def _line_end(text: str, end: int) -> int:
    """The end of the last whole line before `end`; the end of the text when that is nearer."""
    return len(text) if end >= len(text) else text.rfind("\n", 0, end) + 1


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))
