"""How well probabilities rank what came true, and how true they are: what a fit and an evaluation of filters both ask.

Scores and outcomes (1 for taken, 0 for not) are both `[n]`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_BINS: Final = 10


def auroc(scores: Floats, taken: Floats) -> float | None:
    """Probability that a taken suggestion has more confidence than one not taken; equal ones count half.

    None when all or none were taken.
    """
    positives = float(taken.sum())
    negatives = len(taken) - positives
    if not positives or not negatives:
        return None
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return float((ranks @ taken - positives * (positives + 1) / 2) / (positives * negatives))


def aurc(scores: Floats, taken: Floats) -> float | None:
    """Area under the risk-coverage curve: the share not taken among the k surest, averaged over k (El-Yaniv 2010).

    Equal confidences share their outcome, so that the order of suggestions decides nothing. None without suggestions.
    """
    if not len(taken):
        return None
    order = np.argsort(-scores, kind="stable")
    _, inverse, counts = np.unique(-scores[order], return_inverse=True, return_counts=True)
    even = (np.bincount(inverse, weights=taken[order]) / counts)[inverse]
    return float(np.mean(1 - np.cumsum(even) / np.arange(1, len(even) + 1)))


class Bin(NamedTuple):
    """Suggestions whose confidence lies in [low, high): how many, their mean confidence, and the share taken."""

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
    """Expected calibration error (Guo 2017): mean distance of share and confidence over the bins, by their sizes."""
    bins = reliability(scores, taken)
    return sum(each.size * abs(each.taken - each.confidence) for each in bins) / len(scores) if bins else None


def brier(scores: Floats, taken: Floats) -> float | None:
    """Mean squared distance of confidence and outcome (Brier 1950)."""
    return float(np.mean((scores - taken) ** 2)) if len(scores) else None
