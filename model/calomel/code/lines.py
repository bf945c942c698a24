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

from calomel.code.names import COMMON, Names
from calomel.code.tokens import is_placeholder, is_quoted
from calomel.code.trees import in_error, inside, parsed
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
    """The lines of a text, counted from 0; a text that ends with a line end has an empty last line after it."""

    def __init__(self, text: str, names: Names = COMMON) -> None:
        self.text = text
        self.names = names
        whole = split_lines(text)
        if not whole or whole[-1].endswith(("\n", "\r")):
            whole.append("")
        self.lines = [line.rstrip("\r\n") for line in whole]
        self._starts = list(accumulate(map(len, whole), initial=0))
        self.line_end = whole[0][len(self.lines[0]) :] or "\n"

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def tree(self) -> Tree | None:
        """The syntax tree; None without a grammar."""
        return parsed(self.text, self.names.grammar)

    def node(self, offset: int) -> Node | None:
        """The innermost node of the tree at a character; None without a tree, and where the tree has an error."""
        tree = self.tree
        if tree is None or in_error(tree, offset):
            return None
        return tree.root_node.descendant_for_byte_range(2 * offset, 2 * offset + 2)

    def start(self, row: int) -> int:
        """Where a line starts; the end of the text for the line after the last."""
        return self._starts[min(row, len(self.lines))]

    def end(self, row: int) -> int:
        """Where a line ends, before its line end."""
        return self._starts[row] + len(self.lines[row])

    def row(self, offset: int) -> int:
        """The line of `offset`."""
        return max(0, min(bisect_right(self._starts, offset) - 1, len(self.lines) - 1))

    def before(self, offset: int) -> str:
        """The text of the line before `offset`."""
        return self.text[self.start(self.row(offset)) : offset]

    def behind(self, offset: int) -> str:
        """The rest of the line from `offset` on."""
        return self.text[offset : self.end(self.row(offset))]

    def uses(self, name: str) -> Iterator[regex.Match[str]]:
        """The occurrences of a whole name."""
        return self.names.uses(self.text, name)

    def is_quoted(self, offset: int) -> bool:
        """Whether a character is in a string or a comment, except in code within a string."""
        before = self.before(offset)
        found = "unknown" if self.tree is None else inside(self.tree, self.text, offset + 1)
        if found == "unknown":
            return is_quoted(self.lines[self.row(offset)], len(before), self.names)
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
        if not block:
            return None
        first, size = block[0], len(block)
        found = [
            row
            for row, line in enumerate(self.lines)
            if line == first and (size == 1 or self.lines[row : row + size] == list(block))
        ]
        return min(found, key=lambda row: abs(row - near), default=None)
