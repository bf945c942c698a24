"""A part of the index: some files, their chunks with an inverted index, their definitions, their text compressed.

A segment is made once, in the worker, and travels as one block of bytes. What it holds are numbers in arrays, so that
reading it costs the reader nothing and a hundred thousand chunks cost megabytes, not gigabytes.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from zlib import compress, decompress

import numpy as np
from numpy.typing import NDArray

from calomel.workspace.analysis import Analysis, family_of, kind_number
from calomel.workspace.words import word_number

Numbers = NDArray[Any]
# Text is unpacked in pieces of about this many characters: 20 microseconds each.
_PIECE: Final = 6_000
_KEPT: Final = 32
_ARRAYS: Final = {
    "chunk_file": "<u4", "chunk_line": "<u4", "chunk_end": "<u4", "chunk_words": "<u4",
    "term": "<u4", "term_at": "<u4", "post_chunk": "<u4", "post_count": "<u1",
    "def_name": "<u4", "def_file": "<u4", "def_line": "<u4", "def_end": "<u4", "def_body": "<u4",
    "def_kind": "<u1", "def_depth": "<u1",
    "start_line": "<u4", "start_at": "<u4",
    "piece_line": "<u4", "piece_at": "<u4", "piece_of": "<u4", "text": "<u1",
}  # fmt: skip


class SourceFile(NamedTuple):
    """A file to be read.

    Attributes:
        path: absolute.
        name: as prompts name it.
        text: instead of what the disk holds; None reads the disk.
    """

    path: str
    name: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file in a segment.

    Attributes:
        path, name: as in `SourceFile`.
        lines, characters: its size.
        family: languages that call each other have one.
    """

    path: str
    name: str
    lines: int
    characters: int
    family: str


class Found(NamedTuple):
    """A definition in a file of a segment; lines as in `calomel.workspace.analysis.Named`."""

    file: int
    line: int
    end: int
    body: int
    kind: int
    depth: int


class Segment:
    """Arrays over some files. Nothing changes but `alive`: files that have a newer version elsewhere, or are gone."""

    def __init__(self, files: tuple[IndexedFile, ...], arrays: dict[str, Numbers]) -> None:
        self.files = files
        self.arrays = arrays
        self.alive: NDArray[np.bool_] = np.ones(len(files), dtype=np.bool_)
        # Unpacked text: one question after another is about the same code.
        self._pieces: dict[int, list[str]] = {}
        self.words = int(arrays["chunk_words"].sum())

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return len(self.arrays["chunk_file"])

    @property
    def memory(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    def defined(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """For each number of a name, the first of its definitions and the one behind the last."""
        names = self.arrays["def_name"]
        return names.searchsorted(numbers), names.searchsorted(numbers, side="right")

    def definitions(self, first: int, end: int, within: Sequence[int] | None = None) -> list[Found]:
        """Definitions by their places in `defined`, in the order of files and lines; only those `within` some files."""
        if within is None:
            columns = (self.arrays[name][first:end].tolist() for name in _DEFINITION)
            return [Found(*row) for row in zip(*columns, strict=True)]
        at = np.flatnonzero(np.isin(self.arrays["def_file"][first:end], within)) + first
        return [Found(*(int(self.arrays[name][each]) for name in _DEFINITION)) for each in at.tolist()]

    def definitions_of(self, file: int) -> list[Found]:
        """What a file defines, in the order of lines."""
        at = np.flatnonzero(self.arrays["def_file"] == file)
        columns = (self.arrays[name][at].tolist() for name in _DEFINITION)
        return sorted((Found(*row) for row in zip(*columns, strict=True)), key=lambda found: (found.line, -found.end))

    def postings(self, number: int) -> Numbers:
        """The chunks that hold a word, ascending."""
        terms = self.arrays["term"]
        # As one of its own, since searching for another kind of number converts the whole array.
        at = int(terms.searchsorted(np.uint32(number)))
        if at == len(terms) or terms[at] != number:
            return terms[:0]
        first, end = self.arrays["term_at"][at : at + 2].tolist()
        return self.arrays["post_chunk"][first:end]

    def starts(self, file: int) -> Numbers:
        """The file's lines at which an excerpt may begin well, ascending."""
        first, end = self.arrays["start_at"][file : file + 2].tolist()
        return self.arrays["start_line"][first:end]

    def lines(self, file: int, start: int, end: int) -> list[str]:
        """Lines of a file from `start` up to `end`, as they were when it was read."""
        first, last = self.arrays["piece_of"][file : file + 2].tolist()
        starts = self.arrays["piece_line"][first:last]
        at = max(0, int(starts.searchsorted(np.uint32(start), side="right")) - 1)
        until = int(starts.searchsorted(np.uint32(end)))
        if at >= until:
            return []
        begin = int(starts[at])
        lines = [line for number in range(first + at, first + until) for line in self._piece(number)]
        return lines[start - begin : end - begin]

    def _piece(self, number: int) -> list[str]:
        known = self._pieces.get(number)
        if known is None:
            first, end = self.arrays["piece_at"][number : number + 2].tolist()
            text = decompress(self.arrays["text"][first:end].tobytes()).decode("utf-8", "surrogatepass")
            known = _lines(text)
            if len(self._pieces) >= _KEPT:
                self._pieces.clear()
            self._pieces[number] = known
        return known

    def to_bytes(self) -> tuple[bytes, bytes]:
        """A header in JSON, and the arrays one behind another."""
        files = [[each.path, each.name, each.lines, each.characters, each.family] for each in self.files]
        sizes = [len(self.arrays[name]) for name in _ARRAYS]
        header = json.dumps({"files": files, "sizes": sizes}, ensure_ascii=True).encode()
        return header, b"".join(self.arrays[name].tobytes() for name in _ARRAYS)

    @classmethod
    def from_bytes(cls, header: dict[str, Any], data: bytes) -> Segment:
        """The inverse; the arrays look into `data`."""
        arrays: dict[str, Numbers] = {}
        at = 0
        for (name, kind), size in zip(_ARRAYS.items(), header["sizes"], strict=True):
            arrays[name] = np.frombuffer(data, dtype=kind, count=size, offset=at)
            at += arrays[name].nbytes
        return cls(tuple(IndexedFile(*each) for each in header["files"]), arrays)


_DEFINITION: Final = ("def_file", "def_line", "def_end", "def_body", "def_kind", "def_depth")


def _lines(text: str) -> list[str]:
    """Lines with their ends, which the worker has made LF everywhere."""
    found = text.split("\n")
    last = found.pop()
    lines = [line + "\n" for line in found]
    return [*lines, last] if last else lines


class _Columns:
    """Lists that become the arrays."""

    def __init__(self) -> None:
        self.of: dict[str, list[int]] = {name: [] for name in _ARRAYS if name != "text"}
        self.text = bytearray()
        self.definitions: list[tuple[int, ...]] = []
        # Number of the word, chunk, count; columns, since rows of Python's take twenty times as much.
        self.postings = (array("I"), array("I"), array("I"))

    def add(self, number: int, analysis: Analysis) -> None:
        of = self.of
        of["start_at"].append(len(of["start_line"]))
        of["start_line"] += analysis.starts
        for chunk in analysis.chunks:
            chunk_number = len(of["chunk_file"])
            of["chunk_file"].append(number)
            of["chunk_line"].append(chunk.line)
            of["chunk_end"].append(chunk.end)
            of["chunk_words"].append(sum(chunk.words.values()))
            words, chunks, counts = self.postings
            words.extend(chunk.words)
            chunks.extend([chunk_number] * len(chunk.words))
            counts.extend(chunk.words.values())
        for found in analysis.definitions:
            self.definitions.append((
                word_number(found.name), number, found.line, found.end, found.body, kind_number(found.kind),
                min(found.depth, 255),
            ))  # fmt: skip
        self._add_text(analysis.lines)

    def _add_text(self, lines: list[str]) -> None:
        self.of["piece_of"].append(len(self.of["piece_line"]))
        first, size = 0, 0
        for number, line in enumerate(lines):
            size += len(line)
            if size >= _PIECE or number == len(lines) - 1:
                self.of["piece_line"].append(first)
                self.of["piece_at"].append(len(self.text))
                piece = "".join(lines[first : number + 1])
                self.text += compress(piece.encode("utf-8", "surrogatepass"), 1)
                first, size = number + 1, 0

    def arrays(self) -> dict[str, Numbers]:
        of = self.of
        of["start_at"].append(len(of["start_line"]))
        of["piece_of"].append(len(of["piece_line"]))
        of["piece_at"].append(len(self.text))
        names = ("def_name", *_DEFINITION)
        for row in sorted(self.definitions):
            for name, value in zip(names, row, strict=True):
                of[name].append(value)
        arrays = {name: np.array(values, dtype=_ARRAYS[name]) for name, values in of.items()}
        arrays |= self._inverted()
        arrays["text"] = np.frombuffer(bytes(self.text), dtype="<u1")
        return arrays

    def _inverted(self) -> dict[str, Numbers]:
        words, chunks, counts = (np.array(column, dtype="<u4") for column in self.postings)
        # Chunks were added in their order, which a stable sort keeps within a word.
        order = np.argsort(words, kind="stable")
        terms, first = np.unique(words[order], return_index=True)
        return {
            "term": terms,
            "term_at": np.append(first, len(words)).astype("<u4"),
            "post_chunk": chunks[order],
            "post_count": np.minimum(counts[order], 255).astype("<u1"),
        }


def build_segment(files: Sequence[tuple[SourceFile, Analysis]]) -> Segment:
    """The segment of some files."""
    columns = _Columns()
    indexed = []
    for number, (file, analysis) in enumerate(files):
        columns.add(number, analysis)
        characters = sum(map(len, analysis.lines))
        indexed.append(IndexedFile(file.path, file.name, len(analysis.lines), characters, family_of(file.path)))
    return Segment(tuple(indexed), columns.arrays())
