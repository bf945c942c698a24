"""One document's syntax tree, which follows the edits and is parsed when it is needed.

The parser always reads two bytes per code point: what UTF-16 would encode in four is replaced by a stand-in, so that a
byte offset in the tree is twice an offset in the text. A lone CR becomes LF, so that both count the same lines.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Final

from tree_sitter import Parser, Point, Tree

from calomel.workspace.documents import Document, TextChange

# Bytes at a time. One view of the buffer is kept for each length that a last piece may have: the parser keeps every
# object that it was given.
_PIECE: Final = 1 << 14


class ParserInput(threading.local):
    """Returns the text piece by piece; every thread has its own buffer."""

    def __init__(self) -> None:
        self._data = b""
        self._buffer = memoryview(bytearray(_PIECE))
        self._views: dict[int, memoryview] = {_PIECE: self._buffer}

    def take(self, data: bytes) -> None:
        """Read from `data` from now on; only this releases the text read before."""
        self._data = data

    def __call__(self, at: int, _point: Point) -> memoryview:
        """The bytes from `at` on, valid until the next call."""
        size = max(0, min(_PIECE, len(self._data) - at))
        view = self._views.get(size)
        if view is None:
            view = self._views[size] = self._buffer[:size]
        view[:] = self._data[at : at + size]
        return view


class Work:
    """A clock of the parser's own work: it advances each time the parser reads it, which is every 8 to 20 µs.

    So whether a text gets a tree is the same on every machine, however busy it is.
    """

    _SECONDS: Final = 16e-6

    def __init__(self) -> None:
        self._looks = 0

    def __call__(self) -> float:
        """Seconds, including this reading."""
        self._looks += 1
        return self._looks * self._SECONDS


# Beyond this a tree costs more memory and time than a suggestion is worth: about 30,000 lines.
LONGEST_TEXT: Final = 1_000_000
_UNUSUAL: Final = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]|\r(?!\n)")
# Edits that a parse in progress can still take in; beyond that it starts anew.
_MOST_EDITS: Final = 512

_INPUT: Final = ParserInput()

Edit = tuple[int, int, int, tuple[int, int], tuple[int, int], tuple[int, int]]


def parser_text(text: str) -> bytes:
    """What the parser reads: two bytes per code point of the text."""
    if not text.isascii() or "\r" in text:
        text = _UNUSUAL.sub(_stand_in, text)
    return text.encode("utf-16-le")


def _stand_in(found: re.Match[str]) -> str:
    character = found[0]
    if character == "\r":
        return "\n"
    return "\u0101" if character.isalnum() else "\ufffd"


def parse_within(
    parser: Parser, data: bytes, old: Tree | None, deadline: float, clock: Callable[[], float]
) -> Tree | None:
    """The tree of `data`; None when the deadline came first: the same call continues where it stopped."""
    _INPUT.take(data)

    def late(_at: int, _error: bool) -> bool:  # noqa: FBT001 (the library's signature)
        return clock() > deadline

    try:
        if old is None:
            return parser.parse(_INPUT, encoding="utf16le", progress_callback=late)
        return parser.parse(_INPUT, old, "utf16le", late)
    except ValueError:
        return None
    finally:
        _INPUT.take(b"")


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
