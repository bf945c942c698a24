"""Where the last tokens before the cursor occur elsewhere in the project, and what follows them there.

In open documents every token is one character of another text, so finding some tokens is one call of `str.rfind`, which
goes through half a megabyte of code in microseconds; after an edit only the changed lines are read again. All other
files are searched in the index (`calomel.workspace.ngrams`).
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import Final

import numpy as np

from calomel.code.names import LONGEST_LINE
from calomel.workspace.documents import Document, file_of
from calomel.workspace.history import Listener
from calomel.workspace.index import Index
from calomel.workspace.ngrams import FEWEST, LINE_END, LONGEST, TOKEN, Ngrams, Numbers, Query, token_number, tokens_in
from calomel.workspace.segment import Segment

# If the longest match occurs in more places, this many are compared.
_PLACES: Final = 16
# Bytes of a token's number.
_WIDTH: Final = 2
# In all open documents together: about half a megabyte of code.
TOKENS: Final = 120_000
# Words that are kept beside those that stand in the documents.
_SPARE: Final = 4096
# Lines read at once, in a few milliseconds.
_BIT: Final = 2000


# Characters that are read in one turn of the event loop, which takes some 20 ms.
_CHARACTERS: Final = 100_000
# Lines of a document, which are compared after each key.
_MOST_LINES: Final = 40_000


@dataclass(frozen=True, slots=True)
class Match:
    """What follows the longest match.

    Attributes:
        text: up to the end of the line there, or as far as the places agree.
        tokens: how many tokens before the cursor are the same.
        count: how many of the places with a match of this length continue in the same way.
    """

    text: str
    tokens: int
    count: int


class _Words(dict[str, str]):
    """A character per token. When all are used, new tokens share those of old ones."""

    def __init__(self) -> None:
        self.of: list[str] = []

    def __missing__(self, token: str) -> str:
        self[token] = character = chr(len(self) % (sys.maxunicode + 1))
        self.of.append(token)
        return character

    def read(self, text: str) -> str:
        """The tokens of a line; a line end counts as one of them, a blank line as none."""
        return "".join(map(self.__getitem__, tokens_in(text)))


def _lines_of(document: Document) -> list[str]:
    """The lines that are searched: of a text with very many, none."""
    return document.lines(0, document.line_count) if document.line_count <= _MOST_LINES else []


class _Lines:
    """A document's lines, and the tokens of each."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.revision = document.revision
        self.path = str(file_of(document.uri) or "")
        self.texts: list[str] = []
        # None for a line that has not been read yet.
        self.tokens: list[str | None] = []
        # All tokens, and where those of each line begin.
        self.stream = ""
        self.starts: list[int] = []

    def put(self, first: int, end: int, texts: Sequence[str], words: _Words) -> None:
        """Replace some lines."""
        self.texts[first:end] = [text.rstrip("\r\n") for text in texts]
        self.tokens[first:end] = [None] * len(texts)
        self.read(first, first + min(len(texts), _BIT), words)

    def follow(self, words: _Words) -> None:
        """Take in what was changed in the document."""
        if self.revision == self.document.revision:
            return
        self.revision = self.document.revision
        texts = [line.rstrip("\r\n") for line in _lines_of(self.document)]
        most, first, last = min(len(texts), len(self.texts)), 0, 0
        while first < most and texts[first] == self.texts[first]:
            first += 1
        while last < most - first and texts[-1 - last] == self.texts[-1 - last]:
            last += 1
        self.put(first, len(self.texts) - last, texts[first : len(texts) - last], words)

    def read(self, first: int, end: int, words: _Words) -> None:
        """Read those of some lines that have not been read yet, as far as one turn of the event loop allows."""
        left = _CHARACTERS
        for row in range(max(0, first), min(end, len(self.texts))):
            if self.tokens[row] is None and left > 0:
                text = self.texts[row]
                left -= min(len(text), LONGEST_LINE)
                self.tokens[row] = words.read(text) if len(text) <= LONGEST_LINE else ""
                self.stream = ""

    def read_on(self, words: _Words) -> bool:
        """Read some more lines of a long text, a tenth of a second in all; returns whether there were any."""
        if None not in self.tokens:
            return False
        first = self.tokens.index(None)
        self.read(first, first + _BIT, words)
        self.join()
        return True

    def join(self) -> None:
        """Build the stream again after a change."""
        if not self.stream:
            tokens = [each or "" for each in self.tokens]
            self.stream = "".join(tokens)
            self.starts = list(accumulate(map(len, tokens), initial=0))

    def row(self, at: int) -> int:
        """The line of a place in the stream."""
        return bisect_right(self.starts, at) - 1

    def places(self, wanted: str, start: int, end: int) -> Iterator[int]:
        """The places in a part of the stream that follow these tokens, the last one first."""
        at = self.stream.rfind(wanted, start, end)
        while at >= 0:
            yield at + len(wanted)
            at = self.stream.rfind(wanted, start, at + len(wanted) - 1)


@dataclass(frozen=True, slots=True)
class _InDocument:
    """A place in an open document."""

    lines: _Lines
    at: int
    words: _Words

    def rest(self) -> bytes:
        """What follows up to the end of the line: equal for equal tokens, wherever they are."""
        end = self.lines.starts[self.lines.row(self.at) + 1]
        numbers = [token_number(self.words.of[ord(each)]) for each in self.lines.stream[self.at : end]]
        return np.array(numbers, dtype="<u2").tobytes()

    def line(self) -> tuple[str, int]:
        """The line, and how many of its tokens stand before the place."""
        row = self.lines.row(self.at)
        return self.lines.texts[row], self.at - self.lines.starts[row]


@dataclass(frozen=True, slots=True)
class _InFile:
    """A place in a file of the index."""

    segment: Segment
    ngrams: Ngrams
    file: int
    at: int

    def rest(self) -> bytes:
        """As in a document."""
        return self.ngrams.rest_of(self.at)

    def line(self) -> tuple[str, int]:
        """As in a document; an empty line where there is a secret."""
        row, before = self.ngrams.line_of(self.at)
        lines = self.segment.lines(self.file, row, row + 1)
        return (lines[0].rstrip("\r\n") if lines and not self.segment.has_secret(self.file, row) else ""), before


class LongestMatch(Listener):
    """A listener of the workspace. Used from one thread."""

    def __init__(
        self,
        tokens: int = TOKENS,
        index: Index | None = None,
        permits: Callable[[str], bool] = lambda _name: True,
        shows: Callable[[Document], bool] = lambda _document: True,
    ) -> None:
        """Set up without documents.

        Args:
            tokens: in all open documents that are searched.
            index: of the files that are not open.
            permits: says of a file, by its name in prompts, whether it may be used.
            shows: says it of an open document.
        """
        self._limit = tokens
        self._index = Index() if index is None else index
        self._permits = permits
        self._shows = shows
        # The one used last is at the end.
        self._documents: OrderedDict[str, _Lines] = OrderedDict()
        self._words = _Words()

    def opened(self, document: Document) -> None:
        """The document was opened, or its text was replaced."""
        self._documents[document.uri] = lines = _Lines(document)
        lines.put(0, 0, _lines_of(document), self._words)
        self._use(document.uri)

    def closed(self, document: Document) -> None:
        """Drop the document."""
        self._documents.pop(document.uri, None)

    def find(self, document: Document, offset: int) -> Match | None:
        """The longest match of the text before `offset`; None when it has fewer than five tokens.

        A name that is being typed need not match whole: only its beginning must. If the match occurs in several places,
        the text ends where no more than half of them go on alike. The places above the cursor count first, the nearest
        first, then those below, in the documents used last, and in the nearest files.
        """
        if document.uri not in self._documents:
            self.opened(document)  # it was dropped for others
        for lines in self._documents.values():
            lines.follow(self._words)
        own = self._documents[document.uri]
        row = document.line_of(offset)
        if row >= len(own.texts):
            return None
        self._forget_words()
        own.read(row - LONGEST, row + 1, self._words)
        any(lines.read_on(self._words) for lines in (own, *reversed(self._documents.values())))
        self._use(document.uri)
        head = own.texts[row][: offset - document.line_start(row)]
        starts = _starts(own.texts[row]) if own.tokens[row] else []
        index = bisect_left(starts, len(head))
        part = ""
        if index and (head[-1:].isalnum() or head[-1:] == "_"):
            index -= 1
            part = head[starts[index] :]
        cursor, line_end = own.starts[row] + index, own.starts[row + 1]
        before = own.stream[max(0, cursor - LONGEST) : cursor]

        def places(count: int) -> Iterator[_InDocument]:
            wanted = before[-count:]
            others = (lines for lines in reversed(self._documents.values()) if lines is not own)
            above, below = (own, 0, cursor - 1), (own, max(0, line_end - count), len(own.stream) - 1)
            for lines, first, end in (above, below, *((lines, 0, len(lines.stream) - 1) for lines in others)):
                for at in lines.places(wanted, first, end):
                    word = self._words.of[ord(lines.stream[at])]
                    if word.startswith(part) and word not in {part, LINE_END}:
                        yield _InDocument(lines, at, self._words)

        counts = range(FEWEST, len(before) + 1)
        best = FEWEST - 1 + bisect_left(counts, True, key=lambda count: next(places(count), None) is None)
        longest, in_files = self._in_files(own, Query([self._words.of[ord(each)] for each in before], part), best)
        # Whoever is asked about a document may close it: all places are gathered before.
        nearest = list[_InDocument | _InFile](islice(places(best), _PLACES) if best >= max(FEWEST, longest) else ())
        return self._chosen([*nearest, *in_files][:_PLACES], max(best, longest), part, head)

    def _in_files(self, own: _Lines, query: Query, least: int) -> tuple[int, list[_InFile]]:
        """How many tokens the longest match in files has, if it is `least` or longer, and its places, nearest first."""
        best, nearest = max(FEWEST, least), list[_InFile]()
        live = [place for lines in self._documents.values() if (place := self._index.place(lines.path)) is not None]
        for segment in self._index.segments if len(query.numbers) >= FEWEST else ():
            alive, ngrams = segment.alive, segment.ngrams
            if ngrams is None:
                continue
            open_files = [place.number for place in live if place.segment is segment]
            if open_files:
                alive = alive.copy()
                alive[open_files] = False

            def allowed(places: Numbers, ngrams: Ngrams = ngrams, alive: Numbers = alive) -> Numbers:
                return alive[ngrams.file_of(places)]

            length, places = ngrams.longest(query, best, allowed)
            if length > best:
                best, nearest = length, []
            some = places[:: -(-len(places) // _PLACES) or 1]
            files = ngrams.file_of(some).tolist()
            nearest += [_InFile(segment, ngrams, *place) for place in zip(files, some.tolist(), strict=True)]
        folders = [own.path[: at + 1] for at, character in enumerate(own.path) if character == os.sep]
        nearest.sort(key=lambda place: -sum(map(place.segment.files[place.file].path.startswith, folders)))
        return (best, nearest) if nearest else (0, [])

    def _chosen(self, places: Sequence[_InDocument | _InFile], tokens: int, part: str, head: str) -> Match | None:
        """What more than half of the places have, as far as they do, from the nearest one that may be repeated."""
        agreeing, length = _agreeing([place.rest() for place in places])
        for place in (places[number] for number in agreeing if length):
            line, before = place.line()
            starts = _starts(line)
            if before < len(starts) and line.startswith(part, starts[before]) and self._may_repeat(place):
                end = before + length
                line = line[: starts[end]].rstrip() if end < len(starts) else line
                return Match(_behind(line, starts, before, part, head), tokens, len(agreeing))
        return None

    def _may_repeat(self, place: _InDocument | _InFile) -> bool:
        if isinstance(place, _InDocument):
            return self._shows(place.lines.document)
        file = place.segment.files[place.file]
        return self._permits(file.name) and Path(file.path).exists()

    def _forget_words(self) -> None:
        """Read everything again once most words are of texts that are gone: each key in a word makes another one."""
        if len(self._words) <= _SPARE + 2 * sum(
            len(lines.tokens) + len(lines.stream) for lines in self._documents.values()
        ):
            return
        self._words = _Words()
        for lines in self._documents.values():
            lines.tokens = [None] * len(lines.texts)
            lines.stream = ""

    def _use(self, uri: str) -> None:
        """Make the document the last one to be dropped."""
        self._documents[uri].join()
        self._documents.move_to_end(uri)
        room = self._limit
        for each, lines in reversed(tuple(self._documents.items())):
            room -= len(lines.stream)
            if room < 0 and each != uri:
                del self._documents[each]


def _agreeing(rests: Sequence[bytes]) -> tuple[list[int], int]:
    """Which texts begin alike the furthest while they are more than half of all, and for how many tokens."""
    numbers, length = list(range(len(rests))), 0
    while True:
        following = [rests[number][_WIDTH * length : _WIDTH * (length + 1)] for number in numbers]
        token, count = Counter(following).most_common(1)[0] if following else (b"", 0)
        if not token or 2 * count <= len(rests):
            return numbers, length
        numbers = [number for number, each in zip(numbers, following, strict=True) if each == token]
        length += 1


def _starts(text: str) -> list[int]:
    return [match.start() for match in TOKEN.finditer(text)]


def _behind(text: str, starts: Sequence[int], index: int, part: str, head: str) -> str:
    """What follows on a line from one of its tokens on, without the `part` that it begins with."""
    start = starts[index]
    if part:
        return text[start + len(part) :].rstrip()
    gap = text[len(text[:start].rstrip()) : start] if start > starts[0] else ""
    # The spaces before it are part of the answer unless they were already typed.
    typed = head[len(head.rstrip()) :] if head.strip() else gap
    return (gap[len(typed) :] if gap.startswith(typed) else "") + text[start:].rstrip()
