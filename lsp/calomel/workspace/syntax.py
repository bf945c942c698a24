"""The syntax of open documents: trees that follow the edits, and what is asked of them."""

from __future__ import annotations

import time
from typing import Literal

from calomel.workspace.clock import Clock
from calomel.workspace.documents import Document, TextChange
from calomel.workspace.history import Origin
from calomel.workspace.scope import OutlineItem, Scope

Inside = Literal["comment", "string"]


class SyntaxTrees:
    """A listener of the workspace. Every question has an answer by lines and indentation where there is no tree."""

    def __init__(self, clock: Clock = time.monotonic, *, parse_seconds: float = 0.010) -> None:
        self._clock = clock
        self._parse_seconds = parse_seconds

    def opened(self, document: Document) -> None:
        """The document was opened."""

    def changed(self, document: Document, change: TextChange, origin: Origin) -> None:
        """The document was changed: the tree is told of it; it is parsed again when it is asked for."""

    def saved(self, document: Document) -> None:
        """Nothing changes by saving."""

    def closed(self, document: Document) -> None:
        """The tree is let go."""

    def scopes(self, document: Document, offset: int) -> tuple[Scope, ...]:
        """The definitions that enclose `offset`, the innermost last."""
        return ()

    def identifiers_near(self, document: Document, offset: int, limit: int = 32) -> tuple[str, ...]:
        """Distinct identifiers around `offset`, the nearest first, without keywords."""
        return ()

    def block_starts(self, document: Document) -> tuple[int, ...]:
        """Lines at which an excerpt may begin well, ascending."""
        return ()

    def block_ranges(self, document: Document, start_line: int, end_line: int) -> tuple[tuple[int, int], ...]:
        """The blocks within the lines from `start_line` up to `end_line`, as (first, end) lines, one behind another."""
        return ()

    def in_comment_or_string(self, document: Document, offset: int) -> Inside | None:
        """Whether text that is typed at `offset` goes into a comment or a string."""
        return None

    def outline(self, document: Document) -> tuple[OutlineItem, ...]:
        """What the document defines, in file order, outer before inner."""
        return ()

    def error_count(self, text: str, language_id: str) -> int | None:
        """How many places of `text` its grammar does not understand; None without a grammar or in time."""
        return None
