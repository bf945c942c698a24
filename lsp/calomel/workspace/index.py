"""What is known of the workspace's files: the segments, and which of them holds the newest version of a file."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Final

import numpy as np

from calomel.workspace.segment import Found, IndexedFile, Segment
from calomel.workspace.words import word_number

# Fewer live files than this make a segment small, and more small segments than this are made into one.
SMALL: Final = 32
_MANY_SMALL: Final = 12


class Place:
    """A file in a segment."""

    __slots__ = ("number", "segment")

    def __init__(self, segment: Segment, number: int) -> None:
        self.segment = segment
        self.number = number

    @property
    def file(self) -> IndexedFile:
        """The file's names and size."""
        return self.segment.files[self.number]


Defined = tuple[Place, Found]


class Index:
    """Changed by one thread, read by others: what they read is replaced, not changed, but for single entries."""

    def __init__(self) -> None:
        self.segments: tuple[Segment, ...] = ()
        # Counts what was added or removed.
        self.generation = 0
        self._places: dict[str, Place] = {}
        self._by_name: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, path: str) -> bool:
        return path in self._places

    @property
    def memory(self) -> int:
        """Bytes of the segments."""
        return sum(segment.memory for segment in self.segments)

    def paths(self) -> tuple[str, ...]:
        """All files, absolute."""
        return tuple(self._places)

    def place(self, path: str) -> Place | None:
        """Where a file is; None when it is not in the index."""
        return self._places.get(path)

    def named(self, name: str) -> tuple[str, ...]:
        """The files, absolute, whose last part is `name`."""
        return self._by_name.get(name, ())

    def add(self, segment: Segment) -> None:
        """Take over a segment; its files replace those of the same path."""
        with self._lock:
            for number, file in enumerate(segment.files):
                self._let_go(file.path)
                self._places[file.path] = Place(segment, number)
                name = PurePath(file.path).name
                known = self._by_name.get(name, ())
                if file.path not in known:
                    self._by_name[name] = tuple(sorted((*known, file.path)))
            self.segments = tuple(each for each in (*self.segments, segment) if each.alive.any())
            self.generation += 1

    def remove(self, paths: Iterable[str]) -> None:
        """Forget files; those that are not there, or are named twice, do no harm."""
        with self._lock:
            gone = [path for path in dict.fromkeys(paths) if path in self._places]
            for path in gone:
                self._let_go(path)
                del self._places[path]
                name = PurePath(path).name
                self._by_name[name] = tuple(each for each in self._by_name[name] if each != path)
            if gone:
                self.segments = tuple(segment for segment in self.segments if segment.alive.any())
                self.generation += 1

    def scattered(self) -> list[str]:
        """The files of the small segments, when these have become many; reading them again makes one of them."""
        small = [segment for segment in self.segments if np.count_nonzero(segment.alive) < SMALL]
        if len(small) <= _MANY_SMALL:
            return []
        return [
            file.path for segment in small for file, alive in zip(segment.files, segment.alive, strict=True) if alive
        ]

    def definitions(self, names: Sequence[str], within: Sequence[str], most: int) -> dict[str, list[Defined]]:
        """Where names are defined; those defined more than `most` times only in the files `within`.

        Another name may share a number and slip in.
        """
        by_number = {word_number(name): name for name in names}
        numbers = np.array(sorted(by_number), dtype=np.uint32)
        # Another thread may replace them meanwhile.
        segments = self.segments
        bounds = [segment.defined(numbers) for segment in segments]
        counts = sum((end - first for first, end in bounds), np.zeros(len(numbers), dtype=np.int64))
        places = [place for place in map(self.place, within) if place is not None]
        found: dict[str, list[Defined]] = {}
        for segment, (first, end) in zip(segments, bounds, strict=True):
            files = [place.number for place in places if place.segment is segment]
            for at in np.flatnonzero(end > first).tolist():
                if counts[at] > most and not files:
                    continue
                inside = files if counts[at] > most else None
                rows = segment.definitions(int(first[at]), int(end[at]), inside)
                alive = [(Place(segment, row.file), row) for row in rows if segment.alive[row.file]]
                if alive:
                    found.setdefault(by_number[int(numbers[at])], []).extend(alive)
        return found

    def usages(self, name: str, limit: int) -> list[tuple[Place, int]] | None:
        """The chunks that hold a word, as (file, chunk); None when there are more than `limit`."""
        number = word_number(name)
        found: list[tuple[Place, int]] = []
        for segment in self.segments:
            chunks = segment.postings(number)
            if len(chunks) > limit:
                return None
            files = segment.arrays["chunk_file"][chunks]
            pairs = zip(chunks.tolist(), files.tolist(), strict=True)
            found += [(Place(segment, file), chunk) for chunk, file in pairs if segment.alive[file]]
            if len(found) > limit:
                return None
        return found

    def _let_go(self, path: str) -> None:
        place = self._places.get(path)
        if place is not None:
            place.segment.alive[place.number] = False
