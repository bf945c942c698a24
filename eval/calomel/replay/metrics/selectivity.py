"""How well the confidence tells suggestions that are taken from those that are not.

All functions take one confidence and one outcome (1 taken, 0 not) per suggestion, as arrays `[n]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class CurvePoint(NamedTuple):
    """Of the suggestions, the surest `coverage` are shown: the share taken of them, and the confidence of the last."""

    coverage: float
    precision: float
    confidence: float


def auroc(confidences: Sequence[float] | Floats, taken: Sequence[float] | Floats) -> float | None:
    """Probability that a taken suggestion has more confidence than one not taken; equal ones count half.

    None when all or none were taken.
    """
    scores, labels = _arrays(confidences, taken)
    positives = float(labels.sum())
    negatives = len(labels) - positives
    if not positives or not negatives:
        return None
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return float((ranks @ labels - positives * (positives + 1) / 2) / (positives * negatives))


def aurc(confidences: Sequence[float] | Floats, taken: Sequence[float] | Floats) -> float | None:
    """Area under the risk-coverage curve: the share not taken among the k surest, averaged over k (El-Yaniv 2010).

    Equal confidences share their outcome, so that the order of suggestions decides nothing. None without suggestions.
    """
    scores, labels = _arrays(confidences, taken)
    if not len(labels):
        return None
    return float(np.mean(1 - _precisions(scores, labels)))


def excess_aurc(confidences: Sequence[float] | Floats, taken: Sequence[float] | Floats) -> float | None:
    """`aurc` less that of the best possible order (Geifman 2019)."""
    area = aurc(confidences, taken)
    if area is None:
        return None
    labels = np.asarray(taken, dtype=np.float64)
    best = aurc(labels, labels)
    return None if best is None else area - best


def precision_coverage(confidences: Sequence[float] | Floats, taken: Sequence[float] | Floats) -> list[CurvePoint]:
    """The curve, a point for each confidence that occurs, the surest first."""
    scores, labels = _arrays(confidences, taken)
    order = np.argsort(-scores, kind="stable")
    scores, labels = scores[order], labels[order]
    last = np.flatnonzero(np.diff(scores, append=np.inf))
    sums = np.cumsum(labels)
    return [
        CurvePoint(float((at + 1) / len(scores)), float(sums[at] / (at + 1)), float(scores[at])) for at in last.tolist()
    ]


def expected_utility(taken: Sequence[float] | Floats, threshold: float) -> float:
    """What showing these is worth where taking one earns `1 - threshold` and any other costs `threshold`."""
    labels = np.asarray(taken, dtype=np.float64)
    return float(labels.sum() * (1 - threshold) - (len(labels) - labels.sum()) * threshold)


def _precisions(scores: Floats, labels: Floats) -> Floats:
    """The share taken among the k surest, for every k; ties are averaged."""
    order = np.argsort(-scores, kind="stable")
    scores, labels = scores[order], labels[order]
    _, inverse, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    even = (np.bincount(inverse, weights=labels) / counts)[inverse]
    return np.asarray(np.cumsum(even) / np.arange(1, len(even) + 1), dtype=np.float64)


def _arrays(confidences: Sequence[float] | Floats, taken: Sequence[float] | Floats) -> tuple[Floats, Floats]:
    scores = np.asarray(confidences, dtype=np.float64)
    labels = np.asarray(taken, dtype=np.float64)
    if scores.shape != labels.shape:
        raise ValueError(f"{len(scores)} confidences for {len(labels)} outcomes")
    return scores, labels
