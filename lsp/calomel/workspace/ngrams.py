"""Where the last tokens before a cursor occur in the files of a segment: every five tokens, by their hash.

A token is kept as 16 bits of its hash, so a match of five tokens is one by chance in 2^80 places. Only places where
somebody may ask are kept: the start of a name, and what follows a blank or a punctuation mark. That makes about seven
bytes for each token of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
TOKEN: Final = re.compile(r"\w+|[^\w\s]")
LINE_END: Final = "\n"
# A longer line is data, or written by a program.
LONGEST_LINE: Final = 400
# A longer match adds no information.
LONGEST: Final = 64
# Three matching tokens are too common: `self . x`, `( ) :`.
FEWEST: Final = 5
# Of a frequent match, places that also have this many tokens in common are preferred, and so many are looked at.
_DEEPER: Final = 12
_MOST: Final = 128
# Tokens compared at once.
_STRIDE: Final = 16
_MULTIPLIER: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1


def tokens_in(line: str) -> list[str]:
    """The tokens of a line, with its end as the last one; none for a blank line, or one that is too long."""
    tokens = TOKEN.findall(line) if len(line) <= LONGEST_LINE else []
    return [*tokens, LINE_END] if tokens else []


def token_number(token: str) -> int:
    """The number of a token, the same in every process; never 0, which stands between two files."""
    return crc32(token.encode("utf-8", "surrogatepass")) & 0xFFFF or 1


class _TokenNumbers(dict[str, int]):
    def __missing__(self, token: str) -> int:
        self[token] = number = token_number(token)
        return number


class Ngrams:
    """The tokens of some files, one after the other, and an index of the places among them.

    Attributes:
        tokens: numbers, 0 between two files.
        places: in `tokens`, those with the same hash of five tokens together, from an entry of `starts` to the next.
        deeper: of each place, a byte of the hash of more tokens; ascending among those of one hash.
        files: where each file begins.
        lines: where each line that has tokens begins.
        rows: and its number in its file.
        words: all names, ascending, one a line.
        word_starts: of each, in `words`.
        word_numbers: of each, as in `tokens`.
    """

    __slots__ = (
        "deeper", "files", "lines", "places", "rows", "starts", "tokens", "word_numbers", "word_starts", "words",
    )  # fmt: skip

    def __init__(self, files: Iterable[Sequence[str]]) -> None:
        """Read the lines of some files."""
        numbers = _TokenNumbers()
        stream = [0] * LONGEST
        begins, lines, rows, askable = [], [], [], bytearray(LONGEST)
        for file in files:
            begins.append(len(stream))
            for row, line in enumerate(file):
                tokens = tokens_in(line)
                if tokens:
                    lines.append(len(stream))
                    rows.append(row)
                    askable += _askable(line, tokens)
                    stream += map(numbers.__getitem__, tokens)
            stream += [0] * FEWEST
            askable += bytes(FEWEST)
        self.tokens: Numbers = np.array(stream, dtype="<u2")
        self.files: Numbers = np.array(begins, dtype="<u4")
        self.lines: Numbers = np.array(lines, dtype="<u4")
        self.rows: Numbers = np.array(rows, dtype="<u4")
        self._index(np.flatnonzero(np.frombuffer(askable, dtype=np.bool_)))
        words = sorted(word for word in numbers if word[0].isalpha() or word[0] == "_")
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        self.words = b"".join(encoded)
        self.word_starts: Numbers = np.cumsum([0, *map(len, encoded)], dtype="<u4")
        self.word_numbers: Numbers = np.array([numbers[word] for word in words], dtype="<u2")

    def _index(self, places: Numbers) -> None:
        short = deep = np.zeros(len(places), dtype=np.uint64)
        for back in range(1, _DEEPER + 1):
            deep = deep * np.uint64(_MULTIPLIER) + self.tokens[places - back]
            short = deep if back == FEWEST else short
        bits = max(1, len(places).bit_length() - 2)
        buckets = (short * np.uint64(_MULTIPLIER) >> np.uint64(64 - bits)).astype("<u4")
        deeper = (deep * np.uint64(_MULTIPLIER) >> np.uint64(56)).astype("<u1")
        order = np.argsort(buckets.astype(np.uint64) << np.uint64(8) | deeper, kind="stable")
        self.places: Numbers = places[order].astype("<u4")
        self.deeper: Numbers = deeper[order]
        counts = np.bincount(buckets, minlength=1 << bits)
        self.starts: Numbers = np.concatenate(([0], np.cumsum(counts))).astype("<u4")

    @property
    def size(self) -> int:
        """Bytes."""
        arrays = (getattr(self, name) for name in self.__slots__ if name != "words")
        return len(self.words) + sum(int(array.nbytes) for array in arrays)

    def longest(self, query: Query, least: int, allowed: Callable[[Numbers], Numbers]) -> tuple[int, Numbers]:
        """How many tokens the longest match has, at least `least`, and its places; none without one.

        Args:
            query: what is searched.
            least: the fewest tokens.
            allowed: of places, which ones may be used.
        """
        places = self._with_hash(query)
        for back in range(FEWEST):
            if not len(places):
                return 0, places
            places = places[self.tokens[places - (back + 1)] == query.numbers[back]]
        if len(places):
            places = places[allowed(places)]
        if len(places) and query.part:
            begin = np.zeros(1 << 16, dtype=np.bool_)
            begin[self._beginning(query.part)] = True
            places = places[begin[self.tokens[places]]]
        if not len(places):
            return 0, places
        lengths = self._lengths(places, query.numbers)
        best = int(lengths.max())
        return (best, places[lengths == best]) if best >= least else (0, places[:0])

    def _with_hash(self, query: Query) -> Numbers:
        bits = len(self.starts).bit_length() - 1
        bucket = query.short >> (64 - bits)
        first, end = int(self.starts[bucket]), int(self.starts[bucket + 1])
        if end - first > _MOST:
            deeper, wanted = self.deeper[first:end], np.uint8(query.deep)
            low, high = (int(deeper.searchsorted(wanted, side)) for side in ("left", "right"))
            if query.deep_known and high > low:
                first, end = first + low, first + high
        step = -(-(end - first) // _MOST) or 1
        return self.places[first:end:step].astype(np.int64)

    def _lengths(self, places: Numbers, wanted: Numbers) -> Numbers:
        """How many tokens before each place are those wanted, which begin with the last one."""
        lengths = np.zeros(len(places), dtype=np.int64)
        left = np.arange(len(places))
        for first in range(0, len(wanted), _STRIDE):
            part = wanted[first : first + _STRIDE]
            same = self.tokens[places[left, None] - np.arange(first + 1, first + len(part) + 1)] == part
            whole = same.all(axis=1)
            lengths[left] += np.where(whole, len(part), np.argmin(same, axis=1))
            left = left[whole]
            if not len(left):
                break
        return lengths

    def _beginning(self, part: str) -> Numbers:
        """The numbers of the names that begin with `part` and are longer."""
        low, high = part.encode("utf-8", "surrogatepass"), part.encode("utf-8", "surrogatepass") + b"\xff"
        words = range(len(self.word_numbers))
        first = bisect_left(words, low + b"\0", key=self._word)
        return self.word_numbers[first : bisect_left(words, high, lo=first, key=self._word)]

    def _word(self, number: int) -> bytes:
        return self.words[int(self.word_starts[number]) : int(self.word_starts[number + 1])]

    def file_of(self, places: Numbers) -> Numbers:
        """The number of the file of each place."""
        return np.searchsorted(self.files, places, side="right") - 1

    def line_of(self, place: int) -> tuple[int, int]:
        """The row of a place in its file, and how many tokens of that line stand before it."""
        line = int(np.searchsorted(self.lines, place, side="right")) - 1
        return int(self.rows[line]), place - int(self.lines[line])

    def rest_of(self, place: int) -> bytes:
        """What follows a place up to the end of its line: equal for equal tokens."""
        line = int(np.searchsorted(self.lines, place, side="right"))
        end = int(self.lines[line]) if line < len(self.lines) else len(self.tokens)
        rest = self.tokens[place:end]
        # Zeros follow the last line of a file.
        return bytes(rest[rest != 0])


class Query:
    """The tokens before a cursor, as every segment searches them.

    Attributes:
        numbers: of the tokens, the last one first.
        part: of a name that is being typed after them.
        short, deep: as the index computes them.
    """

    __slots__ = ("deep", "deep_known", "numbers", "part", "short")

    def __init__(self, tokens: Sequence[str], part: str) -> None:
        numbers = [token_number(token) for token in reversed(tokens)]
        self.numbers: Numbers = np.array(numbers, dtype="<u2")
        self.part = part
        self.short = _hash(numbers[:FEWEST])
        self.deep = _hash(numbers[:_DEEPER]) >> 56
        self.deep_known = len(numbers) >= _DEEPER


def _hash(numbers: Sequence[int]) -> int:
    total = 0
    for number in numbers:
        total = (total * _MULTIPLIER + number) & _MASK
    return total * _MULTIPLIER & _MASK


def _askable(line: str, tokens: Sequence[str]) -> bytes:
    """For each token of a line, whether somebody may ask for the text from there on.

    Directly after a name, nobody knows that it has ended; and one character is typed as fast as accepted.
    """
    askable = bytearray()
    at, last = 0, len(tokens) - 2
    for number, token in enumerate(tokens):
        before = at
        at = line.find(token, at)
        joined = number > 0 and at == before and (tokens[number - 1][-1].isalnum() or tokens[number - 1][-1] == "_")
        askable.append(not joined and (number < last or (number == last and len(token) > 1)))
        at += len(token)
    return bytes(askable)
