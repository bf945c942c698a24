"""The current file around the window, as it was at one moment. Later changes reach the model as edits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.context.counter import TokenCounter
from calomel.context.window import Window
from calomel.prompts.parts import Excerpt

_CHARACTERS: Final = 5
_BLOCK_REACH: Final = 12
# The snapshot goes into the prompt in pieces of about so many characters, so that not all of it is left out when
# tokens were only estimated.
_PIECE: Final = 4096


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Whole lines of the file.

    Attributes:
        excerpts: the lines, in pieces that follow one another.
        span: where these lines are now.
    """

    excerpts: tuple[Excerpt, ...]
    span: Window

    def __len__(self) -> int:
        """In characters."""
        return sum(len(excerpt.text) for excerpt in self.excerpts)

    def is_whole(self, text: str) -> bool:
        """Whether it is all of `text`."""
        return self.span.start == 0 and self.span.end == len(text)


def take(
    path: str, text: str, window: Window, room: int, counter: TokenCounter, blocks: Sequence[int]
) -> Snapshot | None:
    """The lines around the window that fit into `room` tokens, twice as many above as below, cut at blocks.

    The window is part of it, so that the window can move without the snapshot changing. None when it does not fit.
    """
    size = min(len(text), room * _CHARACTERS)
    middle = (window.start + window.end) // 2
    while size > _CHARACTERS:
        start = max(0, min(middle - size * 2 // 3, len(text) - size))
        start = min(_block_start(text, start, blocks), window.start)
        end = max(_line_end(text, start + size), window.end)
        pieces = _pieces(path, text, start, end)
        count = counter.excerpts(pieces)
        if count <= room:
            return Snapshot(pieces, Window(start, end))
        size = min(size - _CHARACTERS, int(size * room / count * 0.97))
        if start == window.start and end == window.end:
            break
    return None


def _pieces(path: str, text: str, start: int, end: int) -> tuple[Excerpt, ...]:
    """The lines from `start` to `end`, in excerpts of whole lines."""
    pieces: list[Excerpt] = []
    line = text.count("\n", 0, start)
    while start < end:
        cut = text.find("\n", min(start + _PIECE, end) - 1, end) + 1 or end
        pieces.append(Excerpt(path, line, text[start:cut]))
        line += pieces[-1].text.count("\n")
        start = cut
    return tuple(pieces)


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
