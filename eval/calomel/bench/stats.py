"""Percentiles and 95 % intervals: Wilson for shares, the percentile bootstrap for differences and ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# The 97.5 % point of the standard normal distribution: two-sided 95 %.
Z_95 = 1.959963984540054
BOOTSTRAP_ROUNDS = 2000


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate from `n` observations with its 95 % bounds."""

    value: float
    low: float
    high: float
    n: int


def wilson(successes: int, n: int) -> Interval | None:
    """The share `successes / n` with Wilson's score interval (Wilson 1927); None when nothing was observed."""
    if n == 0:
        return None
    share = successes / n
    spread = Z_95 * math.sqrt(share * (1 - share) / n + Z_95**2 / (4 * n**2))
    centre = share + Z_95**2 / (2 * n)
    scale = 1 + Z_95**2 / n
    # The bounds touch 0 and 1 exactly at the extremes; rounding must not push them past the share itself.
    low = 0.0 if successes == 0 else (centre - spread) / scale
    high = 1.0 if successes == n else (centre + spread) / scale
    return Interval(share, low, high, n)


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The `percent`-th percentile (0 to 100), linear between neighbours; None for no values."""
    if not values:
        return None
    return float(np.percentile(np.asarray(values, dtype=np.float64), percent))


def percentile_interval(values: Sequence[float], percent: float, *, seed: int = 0) -> Interval | None:
    """The `percent`-th percentile with its bootstrap interval; None for no values."""
    if not values:
        return None
    found = np.asarray(values, dtype=np.float64)
    low, high = np.percentile(np.percentile(found[_resample(len(values), seed)], percent, axis=1), [2.5, 97.5])
    return Interval(float(np.percentile(found, percent)), float(low), float(high), len(values))


def paired_difference(ours: Sequence[float], theirs: Sequence[float], *, seed: int = 0) -> Interval | None:
    """Mean of `ours[i] - theirs[i]` over the same items, with a bootstrap interval; None without such items."""
    if not ours or len(ours) != len(theirs):
        return None
    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    means = differences[_resample(len(ours), seed)].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(float(differences.mean()), float(low), float(high), len(ours))


def ratio_of_sums(numerators: Sequence[float], denominators: Sequence[float], *, seed: int = 0) -> Interval | None:
    """`sum(numerators) / sum(denominators)`, items resampled together; None when the denominators sum to zero."""
    below = np.asarray(denominators, dtype=np.float64)
    if not denominators or below.sum() == 0:
        return None
    above = np.asarray(numerators, dtype=np.float64)
    picks = _resample(len(denominators), seed)
    sums = below[picks].sum(axis=1)
    ratios = above[picks].sum(axis=1)[sums > 0] / sums[sums > 0]
    low, high = np.percentile(ratios, [2.5, 97.5])
    return Interval(float(above.sum() / below.sum()), float(low), float(high), len(denominators))


def ratio_of_ratios(
    ours: tuple[Sequence[float], Sequence[float]], theirs: tuple[Sequence[float], Sequence[float]], *, seed: int = 0
) -> Interval | None:
    """`ratio_of_sums(*ours) / ratio_of_sums(*theirs)`, items resampled together; None where one of them is unknown."""
    sides = [np.asarray(values, dtype=np.float64) for values in (*ours, *theirs)]
    if len(sides[0]) == 0 or any(side.sum() == 0 for side in sides[1:]):
        return None
    picks = _resample(len(sides[0]), seed)
    above, below, their_above, their_below = (side[picks].sum(axis=1) for side in sides)
    known = (below > 0) & (their_above > 0) & (their_below > 0)
    ratios = above[known] / below[known] * their_below[known] / their_above[known]
    low, high = np.percentile(ratios, [2.5, 97.5])
    sums = [float(side.sum()) for side in sides]
    return Interval(sums[0] / sums[1] * sums[3] / sums[2], float(low), float(high), len(sides[0]))


def _resample(n: int, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Item indices of every bootstrap round: `[rounds, n]`."""
    return np.random.default_rng(seed).integers(0, n, size=(BOOTSTRAP_ROUNDS, n))
