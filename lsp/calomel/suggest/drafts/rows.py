"""The lines of a text, without their ends, with their places."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from calomel.suggest.diff import split_lines


class Rows:
    """Lines count from 0; a text that ends with a line end has an empty last line behind it."""

    def __init__(self, text: str) -> None:
        self.text = text
        whole = split_lines(text)
        if not whole or whole[-1].endswith(("\n", "\r")):
            whole.append("")
        self.lines = [line.rstrip("\r\n") for line in whole]
        self._starts = [0]
        for line in whole:
            self._starts.append(self._starts[-1] + len(line))
        self.line_end = whole[0][len(self.lines[0]) :] or "\n"

    def __len__(self) -> int:
        return len(self.lines)

    def start(self, row: int) -> int:
        """Where a line begins; the end of the text behind the last one."""
        return self._starts[min(row, len(self.lines))]

    def end(self, row: int) -> int:
        """Where a line ends, before its line end."""
        return self._starts[row] + len(self.lines[row])

    def row(self, offset: int) -> int:
        """The line that `offset` lies in."""
        return max(0, min(bisect_right(self._starts, offset) - 1, len(self.lines) - 1))

    def opening(self, before: int, low: int) -> int | None:
        """Where the innermost bracket is that was opened in `low:before` and not closed there; None without one."""
        depth = 0
        for at in range(before - 1, low - 1, -1):
            character = self.text[at]
            if character in ")]}":
                depth += 1
            elif character in "([{":
                if depth == 0:
                    return at
                depth -= 1
        return None

    def find(self, block: Sequence[str], near: int) -> int | None:
        """The row at which these lines stand, the nearest to `near`; None when they do not."""
        if not block:
            return None
        first, size = block[0], len(block)
        found = [
            row
            for row, line in enumerate(self.lines)
            if line == first and (size == 1 or self.lines[row : row + size] == list(block))
        ]
        return min(found, key=lambda row: abs(row - near), default=None)


def indent_of(line: str) -> str:
    """The blanks that a line begins with."""
    return line[: len(line) - len(line.lstrip())]
