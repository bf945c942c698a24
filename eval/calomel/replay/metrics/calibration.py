"""Whether a confidence of 0.7 is taken seven times of ten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BINS = 10


class Bin(NamedTuple):
    """Suggestions whose confidence lies in [low, high): how many, their mean confidence, and the share taken."""

    low: float
    high: float
    size: int
    confidence: float
    taken: float


def reliability(
    confidences: Sequence[float] | NDArray[np.float64], taken: Sequence[float] | NDArray[np.float64]
) -> list[Bin]:
    """Ten bins of equal width, without the empty ones; the last one includes 1."""
    scores, labels = np.asarray(confidences, dtype=np.float64), np.asarray(taken, dtype=np.float64)
    place = np.clip((scores * BINS).astype(np.int64), 0, BINS - 1)
    found = []
    for at in range(BINS):
        inside = place == at
        if inside.any():
            means = float(scores[inside].mean()), float(labels[inside].mean())
            found.append(Bin(at / BINS, (at + 1) / BINS, int(inside.sum()), *means))
    return found


def ece(
    confidences: Sequence[float] | NDArray[np.float64], taken: Sequence[float] | NDArray[np.float64]
) -> float | None:
    """Expected calibration error (Guo 2017): mean distance of share and confidence over the bins, by their sizes."""
    bins = reliability(confidences, taken)
    total = sum(each.size for each in bins)
    return sum(each.size * abs(each.taken - each.confidence) for each in bins) / total if total else None


def brier(
    confidences: Sequence[float] | NDArray[np.float64], taken: Sequence[float] | NDArray[np.float64]
) -> float | None:
    """Mean squared distance of confidence and outcome (Brier 1950)."""
    scores, labels = np.asarray(confidences, dtype=np.float64), np.asarray(taken, dtype=np.float64)
    return float(np.mean((scores - labels) ** 2)) if len(scores) else None
