"""A part of the index: some files, their chunks with an inverted index, their definitions, their compressed text.

A segment is built once, in the worker. It holds numbers in arrays, so that loading it costs the reader nothing and a
hundred thousand chunks cost megabytes, not gigabytes.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple
from zlib import compress, crc32, decompress

import numpy as np
from numpy.typing import NDArray

from calomel.code.budget import Budget, SpentError
from calomel.code.definitions import Definition, block_starts, block_starts_by_lines, definitions_in
from calomel.code.languages import COMMON_KEYWORDS, Grammar, grammar_of
from calomel.code.lines import split_lines
from calomel.code.names import parts
from calomel.code.trees import parse
from calomel.workspace.documents import Document
from calomel.workspace.ngrams import Ngrams, Numbers
from calomel.workspace.secrets import spans
from calomel.workspace.syntax import outline_by_lines

_WORD: Final = re.compile(r"[^\W\d]\w+")
_SHORTEST_PART: Final = 3
# Longer words are data, such as encoded keys.
_LONGEST_WORD: Final = 64


def word_number(word: str) -> int:
    """The number of a word, the same in every process; about five pairs of 200,000 words share one by chance."""
    return crc32(word.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=1 << 14)
def numbers_of(word: str) -> tuple[int, ...]:
    """The numbers of a word and of its parts in lower case; none for a keyword."""
    if word in COMMON_KEYWORDS or len(word) > _LONGEST_WORD:
        return ()
    words = {part for part in parts(word) if len(part) >= _SHORTEST_PART and part.isalpha()}
    return tuple(word_number(each) for each in sorted({word, *(words - COMMON_KEYWORDS)}))


def words_in(text: str) -> Counter[str]:
    """How often each word of at least two characters occurs."""
    return Counter(_WORD.findall(text))


def count_numbers(words: Mapping[str, int] | Iterable[str]) -> dict[int, int]:
    """How often the numbers of some words occur."""
    counted = words if isinstance(words, Mapping) else dict.fromkeys(words, 1)
    counts: dict[int, int] = {}
    for word, count in counted.items():
        for number in numbers_of(word):
            counts[number] = counts.get(number, 0) + count
    return counts


# Long enough to hold a function, short enough to be about one thing (Zed's retrieval uses the same).
CHUNK_LINES: Final = 40
_SHORTEST_CHUNK: Final = 15
# A file that takes longer to parse is split by its lines.
_PARSE_SECONDS: Final = 2.0
# What its tree says is read in a fraction of that.
_READ_SECONDS: Final = 2.0
_KINDS: Final = ("other", "class", "enum", "function", "interface", "method", "module", "trait", "type", "variable")


# Some lines of a file: the first, the one after the last, and how often the number of each word occurs.
IndexedChunk = tuple[int, int, dict[int, int]]


@dataclass(frozen=True, slots=True)
class Analysis:
    """One file.

    Attributes:
        lines: with their line ends.
        starts: lines that are good beginnings of an excerpt.
        secrets: what no model may see, as (start, end) in the whole text.
    """

    lines: list[str]
    starts: tuple[int, ...]
    chunks: tuple[IndexedChunk, ...]
    definitions: tuple[Definition, ...]
    secrets: tuple[tuple[int, int], ...]


def analyse(text: str, path: str) -> Analysis:
    """Analyse a file's text; `path` tells its language."""
    starts, definitions = _structure(text, path)
    lines = split_lines(text)
    # As a whole: what announces a secret may stand far above it.
    secrets = tuple((start, end) for start, end, _ in spans(text))
    return Analysis(lines, starts, _chunks(lines, starts), definitions, secrets)


def _structure(text: str, path: str) -> tuple[tuple[int, ...], tuple[Definition, ...]]:
    grammar = grammar_of(None, path)
    tree = parse(text, grammar, _PARSE_SECONDS)
    if grammar is not None and tree is not None:
        with suppress(SpentError):
            return Budget(_READ_SECONDS).run(
                lambda: (block_starts(tree, grammar, text), definitions_in(tree, grammar, text))
            )
    return block_starts_by_lines(text), outline_by_lines(Document("", "", None, text))


def _chunks(lines: list[str], starts: tuple[int, ...]) -> tuple[IndexedChunk, ...]:
    """Runs of at most `CHUNK_LINES` lines that begin at good places if there are any."""
    chunks: list[IndexedChunk] = []
    line, at = 0, 0
    while line < len(lines):
        end = min(line + CHUNK_LINES, len(lines))
        while at < len(starts) and starts[at] <= end:
            at += 1
        if end < len(lines) and at > 0 and starts[at - 1] >= line + _SHORTEST_CHUNK:
            end = starts[at - 1]
        chunks.append((line, end, count_numbers(words_in("".join(lines[line:end])))))
        line = end
    return tuple(chunks)


def kind_name(number: int) -> str:
    """The kind with this number; "other" for those that nothing uses."""
    return _KINDS[number]


def family_of(path: str) -> str:
    """The language of a file; languages that call each other count as one."""
    grammar: Grammar | None = grammar_of(None, path)
    name = path.rpartition(".")[2] if grammar is None else grammar.name
    return {"typescript": "javascript", "tsx": "javascript", "cpp": "c"}.get(name, name)


# Decompressed texts: consecutive queries are about the same code.
_KEPT: Final = 16
# One row per definition, ordered by name, file and line.
_DEFINITIONS: Final = np.dtype([
    ("name", "<u4"), ("file", "<u4"), ("line", "<u4"), ("end", "<u4"), ("body", "<u4"), ("kind", "<u1"),
    ("depth", "<u1"),
])  # fmt: skip


class SourceFile(NamedTuple):
    """A file to be read.

    Attributes:
        path: absolute.
        name: as prompts name it.
        text: instead of the disk's; None reads the disk.
        wanted: the user lets it in even if no person wrote it.
    """

    path: str
    name: str
    text: str | None = None
    wanted: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class IndexedFile:
    """A file in a segment.

    Attributes:
        path, name, wanted: as in `SourceFile`.
        lines: how many it has.
        family: shared by languages that call each other.
        text: compressed.
        starts: lines that are good beginnings of an excerpt, ascending.
        secrets: as in `Analysis`.
    """

    path: str
    name: str
    lines: int
    family: str
    text: bytes
    starts: Numbers
    secrets: tuple[tuple[int, int], ...] = ()
    wanted: bool = False


class IndexedDefinition(NamedTuple):
    """A definition in a file of a segment; `line` is its first, `end` after its last, `body` after its signature."""

    name: int
    file: int
    line: int
    end: int
    body: int
    kind: int
    depth: int


class Segment:
    """Arrays over some files. Only `alive` changes: a file is dead if it has a newer version elsewhere, or is gone.

    `arrays` has columns with one entry per chunk, "chunk_file", "chunk_line", "chunk_end" and "chunk_words", and the
    inverted index: the words in "term", each with its chunks in "post_chunk" and its counts in "post_count", from its
    "term_at" to the next one's. `ngrams` are those of all files, unless the index has enough of them.
    """

    def __init__(
        self,
        files: tuple[IndexedFile, ...],
        arrays: dict[str, Numbers],
        definitions: Numbers,
        ngrams: Ngrams | None = None,
    ) -> None:
        self.files = files
        self.ngrams = ngrams
        self.arrays = arrays
        self.alive: NDArray[np.bool_] = np.ones(len(files), dtype=np.bool_)
        self.words = int(arrays["chunk_words"].sum())
        self._definitions = definitions
        self._names = np.ascontiguousarray(definitions["name"])
        self._lines: dict[int, list[str]] = {}

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return len(self.arrays["chunk_file"])

    def defined(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """For each number of a name, the index of its first definition and that after its last."""
        return self._names.searchsorted(numbers), self._names.searchsorted(numbers, side="right")

    def definitions(self, first: int, end: int, within: Sequence[int] | None = None) -> list[IndexedDefinition]:
        """Definitions by their indices from `defined`, ordered by file and line; only those `within` some files."""
        rows = self._definitions[first:end]
        return [
            IndexedDefinition(*row)
            for row in (rows if within is None else rows[np.isin(rows["file"], within)]).tolist()
        ]

    def definitions_of(self, file: int) -> list[IndexedDefinition]:
        """The definitions in a file, by line."""
        rows = self._definitions[self._definitions["file"] == file].tolist()
        return sorted((IndexedDefinition(*row) for row in rows), key=lambda each: (each.line, -each.end))

    def postings(self, number: int) -> Numbers:
        """The chunks that contain a word, ascending."""
        terms = self.arrays["term"]
        # The type of the array, since searching for another one converts the whole array.
        at = int(terms.searchsorted(np.uint32(number)))
        if at == len(terms) or terms[at] != number:
            return terms[:0]
        first, end = self.arrays["term_at"][at : at + 2].tolist()
        return self.arrays["post_chunk"][first:end]

    def lines(self, file: int, start: int, end: int) -> list[str]:
        """Lines of a file from `start` up to `end`, as they were when it was read."""
        lines = self._lines.get(file)
        if lines is None:
            lines = split_lines(self._text(file))
            if len(self._lines) >= _KEPT:
                self._lines.clear()
            self._lines[file] = lines
        return lines[start:end]

    def version(self, file: int) -> tuple[str, tuple[tuple[int, int], ...]]:
        """The text of a file as it was read, and the secrets in it."""
        return self._text(file), self.files[file].secrets

    def has_secret(self, file: int, row: int) -> bool:
        """Whether there is a secret in a line, or a part of one."""
        secrets = self.files[file].secrets
        if not secrets:
            return False
        start, end = (sum(map(len, self.lines(file, 0, number))) for number in (row, row + 1))
        return any(low < end and start < high for low, high in secrets)

    def _text(self, file: int) -> str:
        return decompress(self.files[file].text).decode("utf-8", "surrogatepass")


def build_segment(files: Sequence[tuple[SourceFile, Analysis]], *, ngrams: bool = True) -> Segment:
    """The segment of some files, with or without its n-grams."""
    indexed: list[IndexedFile] = []
    chunks: list[tuple[int, ...]] = []
    definitions: list[tuple[int, ...]] = []
    # Number of the word, chunk, count; as columns, since rows of Python objects take twenty times as much memory.
    words, places, counts = array("I"), array("I"), array("I")
    for number, (file, analysis) in enumerate(files):
        text = compress("".join(analysis.lines).encode("utf-8", "surrogatepass"), 1)
        starts = np.array(analysis.starts, dtype="<u4")
        family = family_of(file.path)
        indexed.append(
            IndexedFile(
                file.path, file.name, len(analysis.lines), family, text, starts, analysis.secrets, wanted=file.wanted
            )
        )
        for line, end, counted in analysis.chunks:
            words.extend(counted)
            places.extend([len(chunks)] * len(counted))
            counts.extend(counted.values())
            chunks.append((number, line, end, sum(counted.values())))
        definitions += [
            (
                word_number(each.name), number, each.start_line, each.end_line + 1, each.body_line,
                _KINDS.index(each.kind) if each.kind in _KINDS else 0, min(each.depth, 255),
            )
            for each in analysis.definitions
        ]  # fmt: skip
    columns = np.ascontiguousarray(np.array(chunks, dtype="<u4").reshape(-1, 4).T)
    arrays = dict(zip(("chunk_file", "chunk_line", "chunk_end", "chunk_words"), columns, strict=True))
    arrays |= _inverted(*(np.array(column, dtype="<u4") for column in (words, places, counts)))
    every = Ngrams(analysis.lines for _, analysis in files) if ngrams else None
    return Segment(tuple(indexed), arrays, np.array(sorted(definitions), dtype=_DEFINITIONS), every)


def _inverted(words: Numbers, chunks: Numbers, counts: Numbers) -> dict[str, Numbers]:
    # Chunks were added in order, which a stable sort keeps within a word.
    order = np.argsort(words, kind="stable")
    terms, first = np.unique(words[order], return_index=True)
    return {
        "term": terms,
        "term_at": np.append(first, len(words)).astype("<u4"),
        "post_chunk": chunks[order],
        "post_count": np.minimum(counts[order], 255).astype("<u1"),
    }
