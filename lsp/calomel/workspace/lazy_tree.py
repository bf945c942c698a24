"""One document's syntax tree, which follows the edits and is parsed when it is needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tree_sitter import Parser, Tree

from calomel.code.trees import parse_within, parser_text
from calomel.workspace.documents import Document, TextChange

# Edits that a parse in progress can still take in; beyond that it starts anew.
_MOST_EDITS: Final = 512

Edit = tuple[int, int, int, tuple[int, int], tuple[int, int], tuple[int, int]]


class LazyTree:
    """The tree of one document."""

    def __init__(self, parser: Parser, clock: Callable[[], float]) -> None:
        self._parser = parser
        self._clock = clock
        # The last finished tree, adjusted to every edit since.
        self._tree: Tree | None = None
        self._fresh = False
        # An interrupted parse: its text, and the edits since it began.
        self._unfinished: bytes | None = None
        self._since: list[Edit] = []

    @classmethod
    def beginning_with(cls, tree: Tree, parser: Parser, clock: Callable[[], float]) -> LazyTree:
        """Start with an existing tree, which will be changed here."""
        made = cls(parser, clock)
        made._tree, made._fresh = tree, True
        return made

    def edit(self, document: Document, change: TextChange) -> None:
        """Record a change that the document has had, or would have. Costs microseconds; nothing is parsed."""
        self._fresh = False
        if self._tree is None and self._unfinished is None:
            return
        if _touches_cr(document, change) or len(self._since) > _MOST_EDITS:
            self._forget()
            return
        edit = _edit(change)
        if self._tree is not None:
            self._tree.edit(*edit)
        if self._unfinished is not None:
            self._since.append(edit)

    def get(self, text: str, seconds: float) -> Tree | None:
        """The tree of the current text; None when time runs out. The next call continues."""
        if self._fresh:
            return self._tree
        deadline = self._clock() + seconds
        while not self._fresh:
            if self._unfinished is None:
                self._unfinished = parser_text(text)
                self._since = []
            tree = parse_within(self._parser, self._unfinished, self._tree, deadline, self._clock)
            if tree is None:
                return None
            for edit in self._since:
                tree.edit(*edit)
            self._fresh = not self._since
            self._tree, self._unfinished = tree, None
        return self._tree

    @property
    def current(self) -> Tree | None:
        """The tree of the current text, if it is there already."""
        return self._tree if self._fresh else None

    def _forget(self) -> None:
        self._tree = None
        self._unfinished = None
        self._since = []
        self._parser.reset()


def _edit(change: TextChange) -> Edit:
    inserted = re.sub(r"\r(?!\n)", "\n", change.inserted) if "\r" in change.inserted else change.inserted
    lines, column = inserted.count("\n"), len(inserted) - inserted.rfind("\n") - 1
    if lines == 0:
        column += change.start_column
    return (
        2 * change.start,
        2 * change.end,
        2 * (change.start + len(inserted)),
        (change.start_line, 2 * change.start_column),
        (change.end_line, 2 * change.end_column),
        (change.start_line + lines, 2 * column),
    )


def _touches_cr(document: Document, change: TextChange) -> bool:
    """Whether the change may have turned a lone CR into a CRLF or back, outside its own range."""
    if change.inserted.endswith("\r") or change.removed.endswith("\r"):
        return True
    if change.start == 0:
        return False
    number = change.start_line if change.start_column else change.start_line - 1
    line = document.line(number)
    before = change.start - document.line_start(number) - 1
    return line[before : before + 1] == "\r"
