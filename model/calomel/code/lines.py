r"""The lines of a text, and their indentation.

A line ends at \n, \r\n or \r and at nothing else, unlike in `str.splitlines`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

import regex
from tree_sitter import Node, Tree

from calomel.code.budget import check
from calomel.code.names import COMMON, LONGEST_LINE, Names
from calomel.code.tokens import is_placeholder, is_quoted
from calomel.code.trees import Step, inside, is_erroneous, parsed, way
from calomel.prompts import parts

LINE_END: Final = re.compile(r"\r\n|\r|\n")
# Characters around a place in which lines are looked for: nobody reads a line that is longer, and what is further away
# is no neighbour.
_WINDOW: Final = 1600
# A tab is at least this wide in every editor.
_TAB: Final = 4


def split_lines(text: str) -> list[str]:
    """Lines with their line ends."""
    lines = parts.split_lines(text)
    return lines if lines[-1] else lines[:-1]


def head_of(text: str, offset: int) -> str:
    """The line of `offset`, up to it."""
    least = max(0, offset - _WINDOW)
    return text[max(text.rfind("\n", least, offset), text.rfind("\r", least, offset), least - 1) + 1 : offset]


def rest_of(text: str, offset: int) -> str:
    """The line of `offset`, from there on, without its end."""
    ending = LINE_END.search(text, offset, offset + _WINDOW)
    return text[offset : ending.start() if ending else offset + _WINDOW]


def above(text: str, offset: int) -> list[str]:
    """The lines above the one of `offset`, as far as they are near; the nearest is the last."""
    start = offset - len(head_of(text, offset))
    return LINE_END.split(text[max(0, start - _WINDOW) : start])[:-1]


def below(text: str, offset: int) -> list[str]:
    """The lines below the one of `offset`, as far as they are near."""
    end = offset + len(rest_of(text, offset))
    return LINE_END.split(text[end : end + _WINDOW])[1:]


def filled(lines: list[str], most: int | None = None) -> list[str]:
    """The lines that are not blank, stripped."""
    found: list[str] = []
    for line in lines:
        if len(found) == most:
            break
        if stripped := line.strip():
            found.append(stripped)
    return found


def indent_of(line: str) -> str:
    """The blanks at the start of a line."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def columns(line: str) -> int:
    """The width of a line's indentation; only the order of indentations counts."""
    return len(indent_of(line).expandtabs(_TAB))


class Rows:
    """The lines of a text, counted from 0; a text that ends with a line end has an empty last line after it.

    What is too long to be read as a line is as if it were blank. Methods raise SpentError.
    """

    def __init__(self, text: str, names: Names = COMMON) -> None:
        self.text = text
        self.names = names
        whole = split_lines(text)
        if not whole or whole[-1].endswith(("\n", "\r")):
            whole.append("")
        bare = [line.rstrip("\r\n") for line in whole]
        self.lines = [line if len(line) <= LONGEST_LINE else "" for line in bare]
        self._starts = list(accumulate(map(len, whole), initial=0))
        self._lengths = list(map(len, bare))
        self.line_end = whole[0][len(bare[0]) :] or "\n"

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def tree(self) -> Tree | None:
        """The syntax tree; None without a grammar."""
        return parsed(self.text, self.names.grammar)

    def way(self, offset: int) -> tuple[Step, ...]:
        """The nodes of the tree around a character, from the root down to the smallest.

        Empty without a tree, and where it has an error or is too deep.
        """
        tree = self.tree
        steps = () if tree is None else way(tree, offset)
        return () if is_erroneous(steps) else steps

    def node(self, offset: int) -> Node | None:
        """The last of these; None where there is none."""
        steps = self.way(offset)
        return steps[-1].node if steps else None

    def start(self, row: int) -> int:
        """Where a line starts; the end of the text for the line after the last."""
        return self._starts[min(row, len(self.lines))]

    def end(self, row: int) -> int:
        """Where a line ends, before its line end."""
        return self._starts[row] + self._lengths[row]

    def row(self, offset: int) -> int:
        """The line of `offset`."""
        return max(0, min(bisect_right(self._starts, offset) - 1, len(self.lines) - 1))

    def before(self, offset: int) -> str:
        """The text of the line before `offset`, as far as anybody reads it."""
        return self.text[max(self.start(self.row(offset)), offset - LONGEST_LINE) : offset]

    def behind(self, offset: int) -> str:
        """The rest of the line from `offset` on, likewise."""
        return self.text[offset : min(self.end(self.row(offset)), offset + LONGEST_LINE)]

    def uses(self, name: str) -> Iterator[regex.Match[str]]:
        """The occurrences of a whole name."""
        return self.names.uses(self.text, name)

    def is_quoted(self, offset: int) -> bool:
        """Whether a character is in a string or a comment, except in code within a string; or nobody knows."""
        check()
        before, row = self.before(offset), self.row(offset)
        found = "unknown" if self.tree is None else inside(self.tree, self.text, offset + 1)
        if found == "unknown":
            return self._lengths[row] > LONGEST_LINE or is_quoted(self.lines[row], len(before), self.names)
        return found is not None and not (found == "string" and is_placeholder(before))

    def opening(self, before: int, low: int) -> int | None:
        """Where the innermost unclosed bracket in `low:before` is; None without one."""
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
        """The row at which these lines start, the nearest to `near`; None if they do not occur."""
        check()
        if not block:
            return None
        first, size = block[0], len(block)
        found = [
            row
            for row, line in enumerate(self.lines)
            if line == first and (size == 1 or self.lines[row : row + size] == list(block))
        ]
        return min(found, key=lambda row: abs(row - near), default=None)
