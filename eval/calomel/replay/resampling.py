"""95 % intervals by the bootstrap over minutes: what happens within one minute of one log hangs together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from calomel.bench.stats import Interval, wilson

ROUNDS = 2000
# Statistics that are not sums are computed anew in each round, which takes longer.
ROUNDS_OF_STATISTICS = 500
_BOUNDS = (2.5, 97.5)

Floats = NDArray[np.float64]
Items = NDArray[np.int64]


class Resampling:
    """Draws clusters of items with replacement, the same draws for every figure; deterministic under a seed."""

    def __init__(self, clusters: Sequence[Hashable], seed: int) -> None:
        """Of one cluster key for each item."""
        numbers = {key: number for number, key in enumerate(dict.fromkeys(clusters))}
        self._cluster = np.asarray([numbers[key] for key in clusters], dtype=np.int64)
        self._count = len(numbers)
        rng = np.random.default_rng(seed)
        even = np.full(max(1, self._count), 1 / max(1, self._count))
        # [rounds, clusters]: how often each cluster was drawn.
        self._draws = rng.multinomial(self._count, even, size=ROUNDS).astype(np.float64)[:, : self._count]

    def ratio(self, numerators: Sequence[float] | Floats, denominators: Sequence[float] | Floats) -> Interval | None:
        """`sum(numerators) / sum(denominators)` over the items; None when the denominators sum to zero."""
        above, below = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
        total = float(below.sum())
        if not total:
            return None
        sums = self._draws @ self._sums(below)
        ratios = (self._draws @ self._sums(above))[sums > 0] / sums[sums > 0]
        low, high = np.percentile(ratios, _BOUNDS)
        return Interval(float(above.sum()) / total, float(low), float(high), int((below > 0).sum()))

    def share(self, hits: Sequence[float], of: Sequence[float]) -> Interval | None:
        """`ratio` of zeros and ones. None or all of them gets Wilson's bounds: resampling would claim certainty."""
        found = self.ratio(hits, of)
        if found is not None and found.value in {0.0, 1.0}:
            return wilson(int(sum(hits)), found.n)
        return found

    def rate(self, numerators: Sequence[float] | Floats, per: float) -> Interval | None:
        """`sum(numerators) / per`, where `per` is not of the items, such as minutes; None when it is zero."""
        above = np.asarray(numerators, dtype=np.float64)
        if per <= 0:
            return None
        if not self._count:
            return Interval(0.0, 0.0, 0.0, 0)
        low, high = np.percentile(self._draws @ self._sums(above) / per, _BOUNDS)
        return Interval(float(above.sum()) / per, float(low), float(high), len(above))

    def difference(
        self,
        ours: tuple[Sequence[float], Sequence[float]],
        theirs: tuple[Sequence[float], Sequence[float]],
    ) -> Interval | None:
        """The difference of two ratios over the same clusters; None when a denominator sums to zero."""
        parts = [np.asarray(each, dtype=np.float64) for each in (*ours, *theirs)]
        if not parts[1].sum() or not parts[3].sum():
            return None
        value = float(parts[0].sum() / parts[1].sum() - parts[2].sum() / parts[3].sum())
        drawn = [self._draws @ self._sums(part) for part in parts]
        good = (drawn[1] > 0) & (drawn[3] > 0)
        differences = drawn[0][good] / drawn[1][good] - drawn[2][good] / drawn[3][good]
        low, high = np.percentile(differences, _BOUNDS)
        return Interval(value, float(low), float(high), int(parts[1].sum()))

    def statistic(self, items: Sequence[int] | Items, function: Callable[[Items], float | None]) -> Interval | None:
        """Any statistic of some of the items, given by their numbers; None where it is not defined on all of them."""
        chosen = np.asarray(items, dtype=np.int64)
        value = function(chosen) if len(chosen) else None
        if value is None:
            return None
        clusters = self._cluster[chosen]
        found = []
        for draw in self._draws[:ROUNDS_OF_STATISTICS]:
            again = function(np.repeat(chosen, draw[clusters].astype(np.int64)))
            if again is not None:
                found.append(again)
        low, high = np.percentile(found, _BOUNDS) if found else (value, value)
        return Interval(value, float(low), float(high), len(chosen))

    def _sums(self, values: Floats) -> Floats:
        return np.asarray(np.bincount(self._cluster, weights=values, minlength=self._count), dtype=np.float64)
