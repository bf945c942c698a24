"""Where the last tokens before the cursor stand elsewhere in open documents, and what follows them there.

Every position of a line is known by the three tokens before it, so that an edit costs a few dictionary entries and a
question as many comparisons as there are places with these three tokens. The answer is that of a suffix automaton over
the documents wherever the longest match has three tokens or more; an automaton can only grow at its end, and people
edit in the middle.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from dataclasses import dataclass
from itertools import islice
from sys import intern
from typing import Final

from calomel.workspace.documents import Document, TextChange
from calomel.workspace.history import Listener, Origin

_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
_KEY: Final = 3
_LINE_END: Final = "\n"
# Where one key stands in more places, the newest are compared.
_PLACES: Final = 16
# Of all documents together, some 100 bytes each: about half a megabyte of code.
POSITIONS: Final = 120_000
# A longer match says nothing more.
LONGEST: Final = 64
_LONGEST_LINE: Final = 400
# Lines that are read with one question or keystroke.
_BIT: Final = 60


class _Line:
    """A line of a document, between its neighbours."""

    __slots__ = ("after", "alive", "before", "starts", "text", "tokens")

    def __init__(self, text: str) -> None:
        self.text = text.rstrip("\r\n")
        found = list(_TOKEN.finditer(self.text)) if len(self.text) <= _LONGEST_LINE else []
        self.tokens = [intern(match.group()) for match in found]
        self.starts = [match.start() for match in found]
        self.before: _Line | None = None
        self.after: _Line | None = None
        self.alive = True


_Place = tuple[_Line, int]


@dataclass(frozen=True, slots=True)
class Match:
    """What stands behind the longest match.

    Attributes:
        text: up to the end of the line there.
        tokens: how many tokens before the cursor are the same.
        count: how many of the places with so long a match go on in the same way.
    """

    text: str
    tokens: int
    count: int


class LongestMatch(Listener):
    """A listener of the workspace. Used from one thread."""

    def __init__(self, positions: int = POSITIONS) -> None:
        self._limit = positions
        self._documents: OrderedDict[str, list[_Line]] = OrderedDict()
        self._places: dict[int, _Place | list[_Place]] = {}
        self._waiting: deque[_Line] = deque()
        self._count = 0
        self._dead = 0

    @property
    def positions(self) -> int:
        """How many are kept."""
        return self._count

    def opened(self, document: Document) -> None:
        """The document was opened, or its text came anew."""
        self.closed(document)
        lines = [_Line(text) for text in document.lines(0, document.line_count)]
        self._documents[document.uri] = lines
        _link(lines, 0, len(lines))
        # Reading a long file takes a tenth of a second: that is done bit by bit, with the questions and keystrokes.
        self._waiting.extend(lines)

    def changed(self, document: Document, change: TextChange, origin: Origin) -> None:  # noqa: ARG002 (a listener's)
        """One change was made."""
        lines = self._documents.get(document.uri)
        if lines is None:
            return
        # A CR and an LF may have become one line end, or two: the neighbours are read again too.
        first = max(0, change.start_line - 1)
        last = min(len(lines), change.end_line + 2)
        new_last = last + document.line_count - len(lines)
        fresh = [_Line(text) for text in document.lines(first, new_last)]
        # Mostly they are the same, and the line was only typed in.
        while fresh and first < last and fresh[0].text == lines[first].text:
            del fresh[0]
            first += 1
        while fresh and first < last and fresh[-1].text == lines[last - 1].text:
            del fresh[-1]
            last -= 1
        for line in lines[first:last]:
            self._remove(line)
        lines[first:last] = fresh
        _link(lines, first, first + len(fresh))
        # What follows has other tokens before it; its own places with them are added beside the old ones.
        for line in fresh:
            self._add(line)
        covered = 0
        for line in islice(lines, first + len(fresh), None):
            if covered >= _KEY:
                break
            if line.tokens:
                self._add(line, only=_KEY - covered)
                covered += len(line.tokens) + 1
        self._read_on(document.uri)

    def closed(self, document: Document) -> None:
        """The document is let go."""
        for line in self._documents.pop(document.uri, ()):
            self._remove(line)

    def find(self, document: Document, offset: int) -> Match | None:
        """The longest match of what stands before `offset`; None when it has fewer than three tokens.

        A name that is being typed need not be the same whole: its beginning must be.
        """
        lines = self._documents.get(document.uri)
        row = document.line_of(offset)
        if lines is None or row >= len(lines):
            return None
        self._documents.move_to_end(document.uri)
        self._read_on(document.uri)
        column = offset - document.line_start(row)
        line = lines[row]
        head = line.text[:column]
        index = next((at for at, start in enumerate(line.starts) if start >= column), len(line.starts))
        part = ""
        if index and (head[-1:].isalnum() or head[-1:] == "_"):
            index -= 1
            part = line.text[line.starts[index] : column] if index < len(line.starts) else ""
        key = _key(line, index)
        places = None if key is None else self._places.get(key)
        if places is None:
            return None
        candidates = places if isinstance(places, list) else [places]
        best = 0
        texts: dict[str, int] = {}
        for other, at in reversed(candidates):
            if not other.alive or (other is line and at >= index):
                continue
            text = _behind(other, at, part, head)
            if not text:
                continue
            length = _common(line, index, other, at)
            if length > best:
                best, texts = length, {}
            if length == best:
                texts[text] = texts.get(text, 0) + 1
        if best < _KEY:
            return None
        text = max(texts, key=lambda text: texts[text])
        return Match(text, best, texts[text])

    def _add(self, line: _Line, only: int | None = None) -> None:
        for index in range(min(len(line.tokens), len(line.tokens) if only is None else only) + (only is None)):
            key = _key(line, index)
            if key is None:
                continue
            known = self._places.get(key)
            place = (line, index)
            if known is None:
                self._places[key] = place
            elif isinstance(known, list):
                if only is not None and place in known:
                    continue
                known.append(place)
                if len(known) > _PLACES:
                    del known[0]
                    self._count -= 1
            elif known != place:
                self._places[key] = [known, place]
            else:
                continue
            self._count += 1

    def _remove(self, line: _Line) -> None:
        """The places stay until there are many dead ones: looking for them costs more than passing them over."""
        line.alive = False
        self._dead += len(line.tokens)

    def _read_on(self, uri: str) -> None:
        for _ in range(min(_BIT, len(self._waiting))):
            line = self._waiting.popleft()
            if line.alive:
                self._add(line)
        if self._dead > self._limit // 4 or self._count > self._limit:
            self._rebuild(uri)

    def _rebuild(self, newest: str) -> None:
        """Anew from the documents, the last used ones first, as many as there is room for."""
        self._places.clear()
        self._waiting.clear()
        self._count = self._dead = 0
        self._documents.move_to_end(newest)
        kept: list[str] = []
        # Room to grow until the next time.
        room = self._limit * 3 // 4
        for uri, lines in reversed(self._documents.items()):
            if kept and sum(len(line.tokens) for line in lines) > room:
                continue
            kept.append(uri)
            for line in lines:
                room -= len(line.tokens)
                if room >= 0:
                    self._waiting.append(line)
        for uri in [uri for uri in self._documents if uri not in kept]:
            del self._documents[uri]


def _link(lines: list[_Line], first: int, end: int) -> None:
    for at in range(max(0, first - 1), min(end + 1, len(lines))):
        line = lines[at]
        line.before = lines[at - 1] if at else None
        line.after = lines[at + 1] if at + 1 < len(lines) else None


def _back(line: _Line | None, index: int) -> tuple[str, _Line, int] | None:
    """The token before a place, and the place before it; a line end counts as one token, blank lines as none."""
    if line is None:
        return None
    if index:
        return line.tokens[index - 1], line, index - 1
    before = line.before
    while before is not None and not before.tokens:
        before = before.before
    return None if before is None else (_LINE_END, before, len(before.tokens))


def _key(line: _Line, index: int) -> int | None:
    if index >= _KEY:
        return hash(tuple(line.tokens[index - _KEY : index]))
    found: list[str] = []
    while len(found) < _KEY:
        before = _back(line, index)
        if before is None:
            return None
        token, line, index = before
        found.append(token)
    return hash(tuple(reversed(found)))


def _common(one: _Line, index: int, other: _Line, at: int) -> int:
    """How many tokens before two places are the same."""
    count = 0
    while count < LONGEST:
        a, b = _back(one, index), _back(other, at)
        if a is None or b is None or a[0] != b[0]:
            break
        _, one, index = a
        _, other, at = b
        count += 1
    return count


def _behind(line: _Line, index: int, part: str, head: str) -> str:
    """What follows a place on its line, when it begins with `part`; without that."""
    if index >= len(line.tokens):
        return ""
    start = line.starts[index]
    if not line.text.startswith(part, start) or (part and line.tokens[index] == part):
        return ""
    if part:
        return line.text[start + len(part) :].rstrip()
    gap = line.text[line.starts[index - 1] + len(line.tokens[index - 1]) : start] if index else ""
    # The blanks before it are part of the answer unless they were typed already.
    typed = head[len(head.rstrip()) :] if head.strip() else gap
    return (gap[len(typed) :] if gap.startswith(typed) else "") + line.text[start:].rstrip()
