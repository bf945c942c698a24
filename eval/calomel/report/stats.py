"""Percentiles and 95 % intervals: Wilson for shares, the percentile bootstrap for everything else.

Single items are drawn by `bootstrap`; correlated items, such as those of one minute of a log, by `Resampling`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# The 97.5 % point of the standard normal distribution: two-sided 95 %.
Z_95: Final = 1.959963984540054
ROUNDS: Final = 2000
# Statistics that are not sums are recomputed in each round, which takes longer.
ROUNDS_OF_STATISTICS: Final = 500
_BOUNDS: Final = (2.5, 97.5)

Floats = NDArray[np.float64]
Items = NDArray[np.int64]


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
    return float(np.percentile(np.asarray(values, dtype=np.float64), percent)) if len(values) else None


def bootstrap(statistic: Callable[..., Any], *columns: Sequence[float], seed: int = 0) -> Interval | None:
    """`statistic` of `columns`, each `[n]`, with bounds from drawing items with replacement, all columns alike.

    The statistic works along the last axis; None where it is not finite. Rounds in which it is not finite do not count.
    """
    values = [np.asarray(column, dtype=np.float64) for column in columns]
    n = len(values[0])
    if not n:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(*values))
        if not math.isfinite(value):
            return None
        picks = np.random.default_rng(seed).integers(0, n, size=(ROUNDS, n))
        rounds = np.asarray(statistic(*(column[picks] for column in values)))
    low, high = np.percentile(rounds[np.isfinite(rounds)], _BOUNDS)
    return Interval(value, float(low), float(high), n)


def percentile_interval(values: Sequence[float], percent: float) -> Interval | None:
    """The `percent`-th percentile with its bounds; None for no values."""
    return bootstrap(lambda found: np.percentile(found, percent, axis=-1), values)


def ratio_of_sums(above: Sequence[float], below: Sequence[float], *, seed: int = 0) -> Interval | None:
    """`sum(above) / sum(below)`, items drawn together; None when the denominators sum to zero."""
    return bootstrap(_ratio, above, below, seed=seed)


def ratio_of_ratios(
    ours: tuple[Sequence[float], Sequence[float]], theirs: tuple[Sequence[float], Sequence[float]]
) -> Interval | None:
    """`ratio_of_sums(*ours) / ratio_of_sums(*theirs)`, items drawn together; None where either is undefined."""
    return bootstrap(lambda a, b, c, d: _ratio(a, b) / _ratio(c, d), *ours, *theirs)


def _ratio(above: Floats, below: Floats) -> Any:
    whole = below.sum(axis=-1)
    return np.where(whole > 0, above.sum(axis=-1) / whole, np.nan)


class Resampling:
    """Draws clusters of items with replacement, the same draws for every figure; deterministic under a seed."""

    def __init__(self, clusters: Sequence[Hashable], seed: int) -> None:
        """Takes one cluster key per item."""
        numbers = {key: number for number, key in enumerate(dict.fromkeys(clusters))}
        self._cluster = np.asarray([numbers[key] for key in clusters], dtype=np.int64)
        self._count = len(numbers)
        rng = np.random.default_rng(seed)
        even = np.full(max(1, self._count), 1 / max(1, self._count))
        # [rounds, clusters]: how often each cluster was drawn.
        self._draws = rng.multinomial(self._count, even, size=ROUNDS).astype(np.float64)[:, : self._count]

    def ratio(self, above: Sequence[float], below: Sequence[float]) -> Interval | None:
        """`sum(above) / sum(below)` over the items; None when the denominators sum to zero."""
        return self._interval((above, below), lambda one, other: one / other)

    def share(self, hits: Sequence[float], of: Sequence[float]) -> Interval | None:
        """`ratio` of zeros and ones. None or all of them gets Wilson's bounds: resampling would claim certainty."""
        found = self.ratio(hits, of)
        if found is not None and found.value in {0.0, 1.0}:
            return wilson(int(sum(hits)), found.n)
        return found

    def rate(self, above: Sequence[float], per: float) -> Interval | None:
        """`sum(above) / per`, where `per` is not a sum over items, such as minutes; None when it is zero."""
        if per <= 0:
            return None
        rounds = self._sums(above) / per if self._count else np.zeros(1)
        low, high = np.percentile(rounds, _BOUNDS)
        return Interval(float(sum(above)) / per, float(low), float(high), len(above))

    def difference(self, ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> Interval | None:
        """The difference of two ratios over the same clusters; None when a denominator sums to zero."""
        return self._interval((*ours, *theirs), lambda a, b, c, d: a / b - c / d)

    def statistic(self, items: Sequence[int] | Items, function: Callable[[Items], float | None]) -> Interval | None:
        """Any statistic of some of the items, given by their indices; None where it is not defined on all of them."""
        chosen = np.asarray(items, dtype=np.int64)
        value = function(chosen) if len(chosen) else None
        if value is None:
            return None
        clusters = self._cluster[chosen]
        rounds = (np.repeat(chosen, draw[clusters].astype(np.int64)) for draw in self._draws[:ROUNDS_OF_STATISTICS])
        found = [again for each in rounds if (again := function(each)) is not None]
        low, high = np.percentile(found, _BOUNDS) if found else (value, value)
        return Interval(value, float(low), float(high), len(chosen))

    def _interval(self, columns: Sequence[Sequence[float]], combine: Callable[..., Any]) -> Interval | None:
        """The interval of `combine` over the columns' sums; every second column is a denominator."""
        totals = [float(sum(column)) for column in columns]
        if not all(totals[1::2]):
            return None
        sums = [self._sums(column) for column in columns]
        known = np.all([each > 0 for each in sums[1::2]], axis=0)
        low, high = np.percentile(combine(*(each[known] for each in sums)), _BOUNDS)
        return Interval(float(combine(*totals)), float(low), float(high), sum(value > 0 for value in columns[1]))

    def _sums(self, column: Sequence[float]) -> Floats:
        """`[rounds]`: the sum in each round."""
        values = np.asarray(column, dtype=np.float64)
        return np.asarray(self._draws @ np.bincount(self._cluster, weights=values, minlength=self._count))
