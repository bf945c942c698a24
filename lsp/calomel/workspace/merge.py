"""From candidates to excerpts: overlapping ones become one, copies go, the best are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from calomel.workspace.candidates import Candidate

# Lines between two passages that are shown rather than left out: less than what a second header costs.
_GAP: Final = 3
_LONGEST: Final = 80
# What a second reason adds to the best one.
_SECOND: Final = 0.15


@dataclass(frozen=True, slots=True)
class Merged:
    """One passage with all that speaks for it; `parts` are what it was made of, the strongest first."""

    best: Candidate
    start: int
    end: int
    score: float
    parts: tuple[Candidate, ...]


def merge(candidates: Iterable[Candidate]) -> list[Merged]:
    """Passages that do not overlap, the best first; the order does not depend on that of the candidates."""
    ordered = sorted(
        candidates, key=lambda each: (each.path, each.start, each.end, -each.score, each.source, each.word)
    )
    merged: list[Merged] = []
    for _, group in groupby(ordered, key=lambda each: each.path):
        merged += _merge_file(list(group))
    merged.sort(key=lambda each: (-each.score, each.best.path, each.start))
    return merged


def _merge_file(candidates: Sequence[Candidate]) -> list[Merged]:
    runs: list[list[Candidate]] = []
    end = -1
    for each in candidates:
        overlaps = bool(runs) and each.start < end
        touches = bool(runs) and each.start <= end + _GAP and max(end, each.end) - runs[-1][0].start <= _LONGEST
        if overlaps or touches:
            runs[-1].append(each)
            end = max(end, each.end)
        else:
            runs.append([each])
            end = each.end
    return [_one(run) for run in runs]


def _one(run: Sequence[Candidate]) -> Merged:
    if len(run) == 1:
        return Merged(run[0], run[0].start, run[0].end, run[0].score, (run[0],))
    parts = tuple(sorted(run, key=lambda each: (-each.score, each.start, each.end)))
    best = parts[0]
    start, end = min(each.start for each in run), max(each.end for each in run)
    if end - start > _LONGEST:
        # Around the strongest reason.
        start = max(start, min(best.start, end - _LONGEST))
        end = max(best.end, min(end, start + _LONGEST))
    # The same source found twice at one place is one reason.
    others = {each.source: each.score for each in reversed(parts[1:]) if each.source != best.source}
    return Merged(best, start, end, best.score + _SECOND * sum(others.values()), parts)
