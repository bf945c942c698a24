"""The lines of a text, in blocks, so that an edit costs the same in a long file as in a short one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from calomel.prompts.differences import split_lines

# Square root of the longest files that are edited in earnest.
_BLOCK: Final = 256


class Lines:
    """A sequence of lines that joins to the text. Never empty."""

    def __init__(self, text: str) -> None:
        self._blocks: list[list[str]] = []
        self._sizes: list[int] = []
        self.count = 0
        self.characters = 0
        self._fill(0, 0, split_lines(text))

    def __getitem__(self, number: int) -> str:
        """The line `number`, from 0. Raises IndexError outside."""
        if not 0 <= number < self.count:
            raise IndexError(number)
        block, index = self._find(number)
        return self._blocks[block][index]

    def start(self, number: int) -> int:
        """Where the line `number` starts, in characters from the start of the text."""
        block, index = self._find(number)
        return sum(self._sizes[:block]) + sum(map(len, self._blocks[block][:index]))

    def line_of(self, offset: int) -> int:
        """The line that holds the character at `offset`; the last line for the end of the text and beyond."""
        number = 0
        for block, size in zip(self._blocks, self._sizes, strict=True):
            if offset < size:
                for index, line in enumerate(block):
                    if offset < len(line):
                        return number + index
                    offset -= len(line)
            offset -= size
            number += len(block)
        return self.count - 1

    def slice(self, start: int, end: int) -> list[str]:
        """The lines from `start` up to `end`."""
        return list(self._between(max(0, start), min(end, self.count)))

    def replace(self, start: int, end: int, lines: Sequence[str]) -> None:
        """Put `lines` where those from `start` up to `end` are."""
        first, inside_first = self._find(start)
        last, inside_last = self._find(end) if end < self.count else (len(self._blocks) - 1, len(self._blocks[-1]))
        kept = self._blocks[first][:inside_first], self._blocks[last][inside_last:]
        self._fill(first, last + 1, [*kept[0], *lines, *kept[1]])

    def text(self) -> str:
        """The whole text."""
        return "".join("".join(block) for block in self._blocks)

    def _between(self, start: int, end: int) -> Iterator[str]:
        if start >= end:
            return
        block, index = self._find(start)
        left = end - start
        while left > 0:
            taken = self._blocks[block][index : index + left]
            yield from taken
            left -= len(taken)
            block, index = block + 1, 0

    def _fill(self, first: int, last: int, lines: list[str]) -> None:
        """Replace the blocks from `first` up to `last` by blocks of `lines`."""
        removed_lines = sum(map(len, self._blocks[first:last]))
        removed = sum(self._sizes[first:last])
        small = len(lines) <= 2 * _BLOCK
        blocks = [lines] if small else [lines[at : at + _BLOCK] for at in range(0, len(lines), _BLOCK)]
        blocks = [block for block in blocks if block]
        sizes = [sum(map(len, block)) for block in blocks]
        self._blocks[first:last] = blocks
        self._sizes[first:last] = sizes
        self.count += len(lines) - removed_lines
        self.characters += sum(sizes) - removed

    def _find(self, number: int) -> tuple[int, int]:
        """The block of a line, and the line's index in it."""
        for block, lines in enumerate(self._blocks):
            if number < len(lines):
                return block, number
            number -= len(lines)
        return len(self._blocks) - 1, len(self._blocks[-1])
