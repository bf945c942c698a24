"""Open documents, kept in sync with the editor by its incremental changes. Mismatches are reported, never guessed."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from calomel.prompts.parts import changed_span, split_lines


class Position(NamedTuple):
    """A place in a document; `character` counts UTF-16 units, which every client of the protocol supports."""

    line: int
    character: int


def utf16_length(text: str) -> int:
    """The length of the text in UTF-16 units. A lone surrogate counts as one character."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def column(line: str, character: int) -> int:
    """The column, in code points, of the UTF-16 unit `character` in `line` (without line end).

    Beyond the end of the line it is that end, as the specification says; inside a character it is its start.
    """
    if character <= 0:
        return 0
    if line.isascii():
        return min(character, len(line))
    before = line.encode("utf-16-le", "surrogatepass")[: 2 * character].decode("utf-16-le", "surrogatepass")
    # The last one may be half of a character.
    return len(before) - (before[-1] != line[len(before) - 1])


def file_of(uri: str) -> Path | None:
    """The file that a `file:` uri names; None for untitled documents and other schemes."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        return None
    path = unquote(parts.path)
    return Path(path) if path and "\0" not in path else None


# What stands between paths in the URIs of other schemes: `git:/w/a.py?{"path":"/w/a.py"}`, `x.zip::a.py`, `HEAD:a.py`.
_BETWEEN: Final = re.compile(r"""[\0"'{}<>|?\#&=,;]|:+""")
# As often as clients encode a URI within another one.
_ENCODED: Final = 3


def paths_in(uri: str) -> tuple[Path, ...]:
    """Every path that a URI of another scheme may name: of a file on another machine, in an archive, of a version."""
    for _ in range(_ENCODED):
        uri = unquote(uri)
    pieces = _BETWEEN.split(uri.replace("\\", "/"))
    return tuple(Path(piece if piece.startswith("/") else f"/{piece}") for piece in pieces if piece.strip("/ "))


def prompt_name(uri: str, folders: Sequence[Path]) -> str | None:
    """The path within the innermost folder that contains it, with forward slashes; else the file's name."""
    path = file_of(uri)
    if path is None:
        name = unquote(urlsplit(uri).path).rpartition("/")[2]
        return name or None
    inside = [path.relative_to(folder) for folder in folders if path.is_relative_to(folder)]
    return min((each.as_posix() for each in inside), key=len) if inside else path.name


class ResyncNeeded(Exception):  # noqa: N818 (a state of the connection, as the door sees it)
    """The document differs from the editor's: the editor must send the whole text again. The message says why."""


@dataclass(frozen=True, slots=True)
class RangeChange:
    """Replace a range by `text`, as the editor sends it."""

    start: Position
    end: Position
    text: str


@dataclass(frozen=True, slots=True)
class FullChange:
    """Replace everything by `text`."""

    text: str


Change = RangeChange | FullChange


class Origin(StrEnum):
    """Where a change came from."""

    TYPED = "typed"
    PREDICTED = "predicted"
    UNDO = "undo"
    REDO = "redo"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class TextChange:
    """What one change did.

    Attributes:
        start, end: offsets of the replaced text, in code points of the text before the change.
        inserted, removed: the texts.
        start_line, end_line: lines of `start` and `end` in the text before the change.
        start_column, end_column: code points within these lines.
    """

    start: int
    end: int
    inserted: str
    removed: str
    start_line: int
    end_line: int
    start_column: int
    end_column: int


@dataclass(slots=True)
class LoggedChange:
    """A change of a document that is remembered for whoever asks what happened since.

    Attributes:
        change: what it did.
        origin: where it came from.
        when: seconds of the workspace's clock.
        along: it did a part of a suggestion.
    """

    change: TextChange
    origin: Origin = Origin.TYPED
    when: float = 0.0
    along: bool = False


# Lines of which the starts are found at first, and then four times as many.
_AT_ONCE: Final = 32
# Messages of changes that a document remembers; what is older is not carried forward.
_MESSAGES: Final = 64


class Document:
    """One open document. Offsets are code points; line ends are as the editor sent them.

    Attributes:
        uri: as the editor names it.
        path: as prompts name it; None when it has none.
        language_id: as the editor names it.
        version: the editor's number of the text; None when it sends none.
        revision: counts every change of the text, for caches.
    """

    def __init__(self, uri: str, language_id: str, version: int | None, text: str, path: str | None = None) -> None:
        self.uri = uri
        self.path = path
        self.language_id = language_id
        self.version = version
        self.revision = 0
        self._lines = split_lines(text)
        self._length = len(text)
        # Where the lines start, and the end of the text, as far as anybody asked since a change: a message may have
        # thousands of changes.
        self._starts = [0]
        self._text: str | None = text
        # The changes of the last messages, each message's together.
        self._log: deque[list[LoggedChange]] = deque(maxlen=_MESSAGES)

    def since(self, revision: int) -> list[LoggedChange] | None:
        """The changes since `revision`, oldest first; None if some of them are not remembered any more."""
        count = self.revision - revision
        if not count:
            return []
        kept = [each for message in self._log for each in message]
        return kept[-count:] if 0 < count <= len(kept) else None

    @property
    def last_message(self) -> Sequence[LoggedChange]:
        """The changes of the last message that changed anything."""
        return next((message for message in reversed(self._log) if message), ())

    @property
    def latest(self) -> LoggedChange:
        """The last change. Raises IndexError before the first."""
        return self._log[-1][-1]

    def begin_message(self) -> None:
        """The changes that follow come in one message."""
        if not self._log or self._log[-1]:
            self._log.append([])

    @property
    def text(self) -> str:
        """The whole text; joined when first needed after a change."""
        if self._text is None:
            self._text = "".join(self._lines)
        return self._text

    def __len__(self) -> int:
        return self._length

    def copy(self) -> Document:
        """The document as it is now; later changes do not reach it."""
        copied = copy(self)
        copied._lines, copied._starts = [*self._lines], [*self._starts]  # noqa: SLF001 (its own class)
        return copied

    @property
    def line_count(self) -> int:
        """The number of lines, of which the last one has no line end and may be empty."""
        return len(self._lines)

    def line(self, number: int) -> str:
        """The line `number` with its line end. Raises IndexError outside."""
        if number < 0:
            raise IndexError(number)
        return self._lines[number]

    def lines(self, start: int, end: int) -> list[str]:
        """The lines from `start` up to `end`, as far as they exist."""
        return self._lines[max(0, start) : max(0, end)]

    def line_start(self, number: int) -> int:
        """Where the line `number` starts; the end of the text for a line beyond it."""
        number = min(number, len(self._lines))
        self._count(number + 1)
        return self._starts[number]

    def line_of(self, offset: int) -> int:
        """The line that contains `offset`; the last one for the end of the text and beyond."""
        more = _AT_ONCE
        while self._starts[-1] <= offset and len(self._starts) <= len(self._lines):
            self._count(len(self._starts) + more)
            more *= 4
        return max(0, bisect_right(self._starts, offset, hi=min(len(self._starts), len(self._lines))) - 1)

    def _count(self, lines: int) -> None:
        """Find where the first lines start, and the end of the text if there are fewer."""
        if lines > len(self._starts):
            known = len(self._starts)
            ends = accumulate(map(len, self._lines[known - 1 : lines - 1]), initial=self._starts.pop())
            self._starts += ends

    def offset_at(self, line: int, character: int) -> int:
        """The offset of a position; beyond the end of a line or of the text it is that end."""
        if line >= len(self._lines):
            return len(self)
        number = max(0, line)
        return self.line_start(number) + column(self._lines[number].rstrip("\r\n"), character)

    def position_at(self, offset: int) -> Position:
        """The position of an offset."""
        number, inside = self.place(max(0, min(offset, len(self))))
        return Position(number, utf16_length(self._lines[number][:inside]))

    def place(self, offset: int) -> tuple[int, int]:
        """The line that contains `offset`, and the column in it, in code points."""
        line = self.line_of(offset)
        return line, offset - self.line_start(line)

    def replacing(self, start: int, end: int, text: str) -> TextChange:
        """The change that would replace the characters from `start` to `end` by `text`."""
        return self._between(self.place(start), self.place(end), text)

    def _between(self, begin: tuple[int, int], end: tuple[int, int], text: str) -> TextChange:
        (first, head), (last, tail) = begin, end
        start = self.line_start(first) + head
        if first == last:
            removed = self._lines[first][head:tail]
            return TextChange(start, start + len(removed), text, removed, first, last, head, tail)
        removed = "".join((self._lines[first][head:], *self._lines[first + 1 : last], self._lines[last][:tail]))
        return TextChange(start, start + len(removed), text, removed, first, last, head, tail)

    def apply(self, change: Change) -> TextChange | None:
        """Change the text; None when nothing changes.

        Raises ResyncNeeded for a range that ends before it starts, that is not in the text, or that halves a character.
        """
        if isinstance(change, FullChange) or _replaces_all(change, self):
            # Reduced to the smallest single replacement, so that the diff stream sees what changed, not a new file.
            start, end, new_end = changed_span(self.text, change.text)
            done = self.replacing(start, end, change.text[start:new_end])
        elif change.end < change.start:
            raise ResyncNeeded("a change ends before it starts")
        else:
            done = self._between(self._place_of(change.start), self._place_of(change.end), change.text)
        text = done.inserted
        if done.removed == text:
            return None
        before, after = self._lines[done.start_line][: done.start_column], self._lines[done.end_line][done.end_column :]
        first = self._put(done.start_line, done.end_line + 1, before + text + after)
        del self._starts[first + 1 :]
        self._length += len(text) - len(done.removed)
        self.revision += 1
        self._text = None
        if not self._log:
            self._log.append([])
        self._log[-1].append(LoggedChange(done))
        return done

    def _place_of(self, position: Position) -> tuple[int, int]:
        """Line and column, in code points, of an end of a change; the start of the line after the last is the end."""
        if position.line >= len(self._lines):
            if position.line > len(self._lines) or position.character:
                raise ResyncNeeded("a change is beyond the text")
            return self.place(len(self))
        line = self._lines[position.line].rstrip("\r\n")
        inside = column(line, position.character)
        if inside < len(line) and utf16_length(line[:inside]) < position.character:
            raise ResyncNeeded("a change begins or ends within a character")
        return position.line, inside

    def _put(self, first: int, end: int, text: str) -> int:
        """Replace lines by the lines of `text`, joining a CR and an LF that become neighbours; returns the first."""
        if first > 0 and text.startswith("\n") and self._lines[first - 1].endswith("\r"):
            first -= 1
            text = self._lines[first] + text
        if end < len(self._lines):
            following = self._lines[end]
            # Without a line end of its own, or with half of one, the text runs into the next line.
            if not text.endswith("\n") and (not text.endswith("\r") or following.startswith("\n")):
                text += following
                end += 1
        lines = split_lines(text)
        if end < len(self._lines):
            lines.pop()
        self._lines[first:end] = lines
        return first


class Documents(dict[str, Document]):
    """All open documents by uri, the one touched last at the end."""

    def open(self, uri: str, language_id: str, version: int | None, text: str, path: str | None = None) -> Document:
        """Add a document; one that is already open is replaced, since the editor's text counts."""
        self[uri] = document = Document(uri, language_id, version, text, path)
        self.touch(uri)
        return document

    def touch(self, uri: str) -> None:
        """The user looks at a document or changes it."""
        if uri in self:
            self[uri] = self.pop(uri)

    def change(self, uri: str, version: int | None, changes: Sequence[Change]) -> Iterator[tuple[Document, TextChange]]:
        """Apply the changes one after another, each to the text that the one before left.

        Yields the document after each change that did something. Raises ResyncNeeded when the document is unknown, its
        version goes backwards, or a range is wrong; changes before the wrong one have been applied.
        """
        document = self.get(uri)
        if document is None:
            raise ResyncNeeded("a change came for a document that is not open")
        self.touch(uri)
        if version is not None and document.version is not None:
            full = all(_replaces_all(change, document) for change in changes)
            # Some clients repeat the whole text under a known version.
            if version < document.version or (version == document.version and not full):
                raise ResyncNeeded(f"version {version} came after version {document.version}")
        document.begin_message()
        for change in changes:
            done = document.apply(change)
            if done is not None:
                yield document, done
        if version is not None:
            document.version = version


def _replaces_all(change: Change, document: Document) -> bool:
    """Whether a change carries the whole text; some clients send it with a range beyond every end."""
    return isinstance(change, FullChange) or (change.start == (0, 0) and change.end.line >= document.line_count)
