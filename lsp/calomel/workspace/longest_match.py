"""Where the last tokens before the cursor occur elsewhere in open documents, and what follows them there.

Every token is one character of another text, so finding some tokens is one call of `str.rfind`, which goes through half
a megabyte of code in microseconds; after an edit only the changed lines are read again.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Final

from calomel.workspace.documents import Document, TextChange
from calomel.workspace.history import Listener, Origin

_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
_LINE_END: Final = "\n"
_FEWEST: Final = 3
# A longer match adds no information.
LONGEST: Final = 64
# If the longest match occurs in more places, this many are compared.
_PLACES: Final = 16
# In all documents together: about half a megabyte of code.
TOKENS: Final = 120_000
_LONGEST_LINE: Final = 400
# Words that are kept beside those that stand in the documents.
_SPARE: Final = 4096
# Lines read at once, in a few milliseconds.
_BIT: Final = 2000


@dataclass(frozen=True, slots=True)
class Match:
    """What follows the longest match.

    Attributes:
        text: up to the end of the line there.
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
        tokens = _TOKEN.findall(text) if len(text) <= _LONGEST_LINE else []
        return "".join(map(self.__getitem__, [*tokens, _LINE_END])) if tokens else ""


class _Lines:
    """A document's lines, and the tokens of each."""

    def __init__(self, document: Document) -> None:
        self.document = document
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

    def read(self, first: int, end: int, words: _Words) -> None:
        """Read those of some lines that have not been read yet."""
        for row in range(max(0, first), min(end, len(self.texts))):
            if self.tokens[row] is None:
                self.tokens[row] = words.read(self.texts[row])
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


class LongestMatch(Listener):
    """A listener of the workspace. Used from one thread."""

    def __init__(
        self, tokens: int = TOKENS, shows: Callable[[Document, int], bool] = lambda _document, _row: True
    ) -> None:
        """`shows` says of a line of a document whether it may be repeated."""
        self._limit = tokens
        self._shows = shows
        # The one used last is at the end.
        self._documents: OrderedDict[str, _Lines] = OrderedDict()
        self._words = _Words()

    def opened(self, document: Document) -> None:
        """The document was opened, or its text was replaced."""
        self._documents[document.uri] = lines = _Lines(document)
        lines.put(0, 0, document.lines(0, document.line_count), self._words)
        self._use(document.uri)

    def changed(self, document: Document, change: TextChange, origin: Origin) -> None:  # noqa: ARG002 (a listener's)
        """One change was made."""
        lines = self._documents.get(document.uri)
        if lines is None:
            return
        # A CR and an LF may have become one line end, or two: the neighbouring lines are read again too.
        first = max(0, change.start_line - 1)
        last = min(len(lines.texts), change.end_line + 2)
        lines.put(first, last, document.lines(first, last + document.line_count - len(lines.texts)), self._words)

    def closed(self, document: Document) -> None:
        """Drop the document."""
        self._documents.pop(document.uri, None)

    def find(self, document: Document, offset: int) -> Match | None:
        """The longest match of the text before `offset`; None when it has fewer than three tokens.

        A name that is being typed need not match whole: only its beginning must. If several texts follow equally many
        places, the nearest one above the cursor is taken, then one below, then one of the document used last.
        """
        own = self._documents.get(document.uri)
        row = document.line_of(offset)
        if own is None or row >= len(own.texts):
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

        def places(count: int) -> Iterator[tuple[_Lines, int]]:
            wanted, others = (
                before[-count:],
                (lines for lines in reversed(self._documents.values()) if lines is not own),
            )
            above, below = (own, 0, cursor - 1), (own, max(0, line_end - count), len(own.stream) - 1)
            for lines, first, end in (above, below, *((lines, 0, len(lines.stream) - 1) for lines in others)):
                for at in lines.places(wanted, first, end):
                    word = self._words.of[ord(lines.stream[at])]
                    if word.startswith(part) and word not in {part, _LINE_END}:
                        yield lines, at

        counts = range(_FEWEST, len(before) + 1)
        best = _FEWEST - 1 + bisect_left(counts, True, key=lambda count: next(places(count), None) is None)
        if best < _FEWEST:
            return None
        # Whoever is asked about a document may close it.
        nearest = list(islice(places(best), _PLACES))
        texts = Counter(
            _behind(lines, at, part, head) for lines, at in nearest if self._shows(lines.document, lines.row(at))
        )
        text, count = texts.most_common(1)[0] if texts else ("", 0)
        return Match(text, best, count) if texts else None

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


def _starts(text: str) -> list[int]:
    return [match.start() for match in _TOKEN.finditer(text)]


def _behind(lines: _Lines, at: int, part: str, head: str) -> str:
    """What follows a place on its line, without the `part` that it begins with."""
    row = lines.row(at)
    text, starts = lines.texts[row], _starts(lines.texts[row])
    start = starts[at - lines.starts[row]]
    if part:
        return text[start + len(part) :].rstrip()
    gap = text[len(text[:start].rstrip()) : start] if start > starts[0] else ""
    # The spaces before it are part of the answer unless they were already typed.
    typed = head[len(head.rstrip()) :] if head.strip() else gap
    return (gap[len(typed) :] if gap.startswith(typed) else "") + text[start:].rstrip()
