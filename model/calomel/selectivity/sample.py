"""Suggestions and their outcomes, as fits and evaluations of the filter read them: a line of JSON per candidate.

And metrics of how well probabilities rank outcomes, and how calibrated they are. Scores and outcomes (1 for taken, 0
for not) are both `[n]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from calomel.selectivity.calibrator import Subject

Floats = NDArray[np.float64]
_BINS: Final = 10

# What a person decided. A suggestion of less than four characters is `too_short` to tell.
Reaction = Literal["accepted", "partly", "rejected", "too_short", "superseded"]


class SampleError(ValueError):
    """A file contains no samples; the message names it and the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(Subject):
    """One candidate, with everything that a calibrator sees of it.

    Attributes:
        question: identifies the request; the candidates of one question compete.
        outcome: what a person decided.
        group: what must not be split between a fit and its test: a package, a day of a person.
        time: seconds, of the log's clock or since 1970.
        filters: hard filters that drop it.
        saved_characters: that accepting it saved.
        judged_ms: milliseconds that filters and calibrator took for it.
        shown: whether it was on the screen; a log knows the user's reaction only to those.
    """

    question: str
    outcome: Reaction
    group: str = ""
    time: float = 0.0
    filters: tuple[str, ...] = ()
    saved_characters: int = 0
    judged_ms: float = 0.0
    shown: bool = True

    @property
    def accepted(self) -> bool:
        """Whether all of it was taken."""
        return self.outcome == "accepted"

    @property
    def decided(self) -> bool:
        """Whether a person could have decided about it."""
        return self.outcome in {"accepted", "partly", "rejected"}

    def to_line(self) -> str:
        """One line of JSON, with its end; None is left out."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(values, separators=(",", ":"), allow_nan=False) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Sample:
        """The inverse of `to_line`; fields that a later version added are ignored. Raises ValueError."""
        return msgspec.json.decode(line, type=cls)


def read_samples(paths: Iterable[Path]) -> Iterator[Sample]:
    """All samples of some files, in order. Raises SampleError, OSError."""
    for path in paths:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    yield Sample.from_line(line.decode("utf-8"))
                except (ValueError, RecursionError) as error:
                    raise SampleError(f"{path}, line {number}, is not a sample: {error}") from error


def auroc(scores: Floats, taken: Floats) -> float | None:
    """Probability that a taken suggestion has a higher score than one not taken; ties count half.

    None if all or none were taken.
    """
    positives = float(taken.sum())
    negatives = len(taken) - positives
    if not positives or not negatives:
        return None
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return float((ranks @ taken - positives * (positives + 1) / 2) / (positives * negatives))


class Bin(NamedTuple):
    """Suggestions with a confidence in [low, high): how many, their mean confidence, and the share taken."""

    low: float
    high: float
    size: int
    confidence: float
    taken: float


def reliability(scores: Floats, taken: Floats) -> list[Bin]:
    """Ten bins of equal width, without the empty ones; the last one includes 1."""
    place = np.clip((scores * _BINS).astype(np.int64), 0, _BINS - 1)
    inside = [(at, place == at) for at in range(_BINS) if (place == at).any()]
    return [
        Bin(at / _BINS, (at + 1) / _BINS, int(here.sum()), float(scores[here].mean()), float(taken[here].mean()))
        for at, here in inside
    ]


def ece(scores: Floats, taken: Floats) -> float | None:
    """Expected calibration error (Guo 2017): mean distance of share and confidence over the bins, weighted by size."""
    bins = reliability(scores, taken)
    return sum(each.size * abs(each.taken - each.confidence) for each in bins) / len(scores) if bins else None
