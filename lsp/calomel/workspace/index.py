"""The index of the workspace's files: segments, which of them has the newest version of a file, and a search."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

import numpy as np

from calomel.workspace.segment import IndexedDefinition, IndexedFile, Numbers, Segment, word_number

# A segment with fewer live files than this is small; more small segments than this are merged into one.
SMALL: Final = 32
_MANY_SMALL: Final = 12


class SegmentFile:
    """A file in a segment."""

    __slots__ = ("number", "segment")

    def __init__(self, segment: Segment, number: int) -> None:
        self.segment = segment
        self.number = number

    @property
    def file(self) -> IndexedFile:
        """The file's names and size."""
        return self.segment.files[self.number]


Defined = tuple[SegmentFile, IndexedDefinition]


class Index:
    """Written by one thread, read by others: data is replaced, not changed, except for single entries."""

    def __init__(self) -> None:
        self.segments: tuple[Segment, ...] = ()
        # Counts additions and removals.
        self.generation = 0
        self._places: dict[str, SegmentFile] = {}
        self._by_name: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, path: str) -> bool:
        return path in self._places

    def paths(self) -> tuple[str, ...]:
        """All files, absolute."""
        return tuple(self._places)

    def place(self, path: str) -> SegmentFile | None:
        """The place of a file; None when it is not in the index."""
        return self._places.get(path)

    def lines(self, path: str, start: int, end: int) -> list[str]:
        """Lines of a file, as far as they exist."""
        place = self._places.get(path)
        return [] if place is None else place.segment.lines(place.number, start, end)

    def named(self, name: str) -> tuple[str, ...]:
        """The files, absolute, whose last part is `name`."""
        return self._by_name.get(name, ())

    def add(self, segment: Segment) -> None:
        """Add a segment; its files replace those of the same path."""
        with self._lock:
            for number, file in enumerate(segment.files):
                self._let_go(file.path)
                self._places[file.path] = SegmentFile(segment, number)
                name = PurePath(file.path).name
                paths = self._by_name.get(name, ())
                if file.path not in paths:
                    self._by_name[name] = tuple(sorted((*paths, file.path)))
            self.segments = tuple(each for each in (*self.segments, segment) if each.alive.any())
            self.generation += 1

    def remove(self, paths: Iterable[str]) -> None:
        """Forget files; unknown and repeated ones do no harm."""
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
        """The files of the small segments, if there are many; reading them again makes one segment of them."""
        small = [segment for segment in self.segments if np.count_nonzero(segment.alive) < SMALL]
        if len(small) <= _MANY_SMALL:
            return []
        return [
            file.path for segment in small for file, alive in zip(segment.files, segment.alive, strict=True) if alive
        ]

    def definitions(self, names: Sequence[str], within: Sequence[str], most: int) -> dict[str, list[Defined]]:
        """Where names are defined; those defined more than `most` times only in the files `within`.

        Another name with the same number may slip in.
        """
        by_number = {word_number(name): name for name in names}
        numbers = np.array(sorted(by_number), dtype=np.uint32)
        # Another thread may replace them meanwhile.
        segments = self.segments
        bounds = [segment.defined(numbers) for segment in segments]
        counts = sum((end - first for first, end in bounds), np.zeros(len(numbers), dtype=np.int64))
        places = [place for place in map(self.place, within) if place is not None]
        by_name: dict[str, list[Defined]] = {}
        for segment, (first, end) in zip(segments, bounds, strict=True):
            files = [place.number for place in places if place.segment is segment]
            for at in np.flatnonzero(end > first).tolist():
                if counts[at] > most and not files:
                    continue
                inside = files if counts[at] > most else None
                rows = segment.definitions(int(first[at]), int(end[at]), inside)
                alive = [(SegmentFile(segment, row.file), row) for row in rows if segment.alive[row.file]]
                if alive:
                    by_name.setdefault(by_number[int(numbers[at])], []).extend(alive)
        return by_name

    def usages(self, name: str, limit: int) -> list[tuple[SegmentFile, int]] | None:
        """The chunks that contain a word, as (file, chunk); None when there are more than `limit`."""
        number = word_number(name)
        places: list[tuple[SegmentFile, int]] = []
        for segment in self.segments:
            chunks = segment.postings(number)
            if len(chunks) > limit:
                return None
            files = segment.arrays["chunk_file"][chunks]
            pairs = zip(chunks.tolist(), files.tolist(), strict=True)
            places += [(SegmentFile(segment, file), chunk) for chunk, file in pairs if segment.alive[file]]
            if len(places) > limit:
                return None
        return places

    def _let_go(self, path: str) -> None:
        place = self._places.get(path)
        if place is not None:
            place.segment.alive[place.number] = False


K1: Final = 1.2
B: Final = 0.75
# A word in more than this share of all chunks says nothing, and costs the most.
_COMMON: Final = 0.25
# The rarest words decide; the others cost time.
_MOST_TERMS: Final = 48
# With fewer chunks than this, every word is in a large share of them.
_FEW: Final = 100


class Hit(NamedTuple):
    """A chunk of a segment, and its score."""

    score: float
    segment: Segment
    chunk: int


def search(
    segments: Sequence[Segment], query: Mapping[int, int], limit: int, late: Callable[[], bool] = lambda: False
) -> list[Hit]:
    """The best chunks of live files, best first; equal ones in the order of the index.

    Args:
        segments: to be searched.
        query: number of a word → how often it counts.
        limit: how many chunks to return.
        late: called after each segment; the rest is skipped once it returns True.
    """
    chunks = sum(segment.chunks for segment in segments)
    if chunks == 0 or not query:
        return []
    terms = np.array(sorted(query), dtype=np.uint32)
    weights = np.array([query[number] for number in terms.tolist()], dtype=np.float64)
    places = [_places(segment, terms) for segment in segments]
    frequency = sum((sizes for _, sizes in places), np.zeros(len(terms), dtype=np.int64))
    usable = (frequency > 0) & ((frequency <= _COMMON * chunks) | (chunks < _FEW))
    idf = np.log1p((chunks - frequency + 0.5) / (frequency + 0.5)) * weights * usable
    if np.count_nonzero(usable) > _MOST_TERMS:
        usable &= idf >= np.sort(idf)[-_MOST_TERMS]
    average = sum(segment.words for segment in segments) / chunks
    hits: list[Hit] = []
    for segment, (firsts, sizes) in zip(segments, places, strict=True):
        scores = _scores(segment, firsts, np.where(usable, sizes, 0), idf, average)
        hits += _best(segment, scores, limit)
        if late():
            break
    hits.sort(key=lambda hit: -hit.score)
    return hits[:limit]


def _places(segment: Segment, terms: Numbers) -> tuple[Numbers, Numbers]:
    """Where the postings of each term begin in the segment, and how many there are."""
    numbers, bounds = segment.arrays["term"], segment.arrays["term_at"]
    if len(numbers) == 0:
        return np.zeros(len(terms), dtype=np.int64), np.zeros(len(terms), dtype=np.int64)
    at = np.minimum(np.searchsorted(numbers, terms), len(numbers) - 1)
    firsts = bounds[at].astype(np.int64)
    sizes = np.where(numbers[at] == terms, bounds[at + 1].astype(np.int64) - firsts, 0)
    return firsts, sizes


def _scores(segment: Segment, firsts: Numbers, sizes: Numbers, idf: Numbers, average: float) -> Numbers:
    """The score of every chunk of a segment."""
    arrays = segment.arrays
    total = int(sizes.sum())
    # The positions of all postings of all terms, concatenated.
    shifts = np.repeat(firsts - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes)
    at = np.arange(total) + shifts
    chunk = arrays["post_chunk"][at]
    count = arrays["post_count"][at].astype(np.float64)
    length = arrays["chunk_words"][chunk] / average
    score = np.repeat(idf, sizes) * count * (K1 + 1) / (count + K1 * (1 - B + B * length))
    return np.bincount(chunk, weights=score, minlength=segment.chunks)


def _best(segment: Segment, scores: Numbers, limit: int) -> list[Hit]:
    scores = np.where(segment.alive[segment.arrays["chunk_file"]], scores, 0.0)
    count = min(limit, int(np.count_nonzero(scores)))
    if count == 0:
        return []
    least = np.partition(scores, -count)[-count]
    able = np.flatnonzero(scores >= least)
    # Equal scores keep their order.
    best = able[np.argsort(-scores[able], kind="stable")][:count]
    return [Hit(float(scores[at]), segment, int(at)) for at in best.tolist()]
