"""Chunks by their likeness to a query: Okapi BM25 over inverted indexes (Robertson and Zaragoza 2009)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from calomel.workspace.segment import Numbers, Segment

K1: Final = 1.2
B: Final = 0.75
# A word in more than this part of all chunks tells nothing, and costs the most.
_COMMON: Final = 0.25
# The rarest ones decide; the others cost time.
_MOST_TERMS: Final = 48
# Below so many chunks every word is in a large part of them.
_FEW: Final = 100


class Hit(NamedTuple):
    """A chunk of a segment, and its score."""

    score: float
    segment: Segment
    chunk: int


def search(
    segments: Sequence[Segment],
    query: Mapping[int, int],
    limit: int,
    late: Callable[[], bool] = lambda: False,
) -> list[Hit]:
    """The best chunks of files that are alive, best first; equal ones in the order of the index.

    Args:
        segments: to be searched.
        query: number of a word → how often it counts.
        limit: how many chunks to return.
        late: asked after each segment; the rest is left out once it says yes.
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
    found: list[Hit] = []
    for segment, (firsts, sizes) in zip(segments, places, strict=True):
        scores = _scores(segment, firsts, np.where(usable, sizes, 0), idf, average)
        found += _best(segment, scores, limit)
        if late():
            break
    found.sort(key=lambda hit: -hit.score)
    return found[:limit]


def _places(segment: Segment, terms: Numbers) -> tuple[Numbers, Numbers]:
    """Where the postings of each term begin in the segment, and how many there are."""
    known, bounds = segment.arrays["term"], segment.arrays["term_at"]
    if len(known) == 0:
        return np.zeros(len(terms), dtype=np.int64), np.zeros(len(terms), dtype=np.int64)
    at = np.minimum(np.searchsorted(known, terms), len(known) - 1)
    firsts = bounds[at].astype(np.int64)
    sizes = np.where(known[at] == terms, bounds[at + 1].astype(np.int64) - firsts, 0)
    return firsts, sizes


def _scores(segment: Segment, firsts: Numbers, sizes: Numbers, idf: Numbers, average: float) -> Numbers:
    """The score of every chunk of a segment."""
    arrays = segment.arrays
    total = int(sizes.sum())
    # The positions of all postings of all terms, one behind another.
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
