"""A threshold with a promise: at least the wanted share of what is shown gets accepted, with so much confidence.

Thresholds are tried from the strictest down, and the first one whose promise cannot be kept ends the search: each test
stands on the ones before it, so that trying many costs nothing (fixed-sequence testing of Learn then Test, Angelopoulos
et al. 2021, arXiv 2110.01052). One test is the lower bound of Clopper and Pearson (1934), exact for any number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

CONFIDENCE: Final = 0.9
# Strictest first. Finer steps would test numbers that nobody can tell apart.
GRID: Final = tuple(round(0.99 - 0.01 * step, 2) for step in range(99))
# With fewer shown the bound is too wide to start the sequence, whatever they are.
FEWEST: Final = 10
_STEPS: Final = 60


@dataclass(frozen=True, slots=True)
class Promise:
    """A threshold and what it keeps.

    Attributes:
        threshold: show from this probability on.
        shown: of the calibration data.
        accepted: of these.
        bound: the acceptance rate is at least this, with the confidence asked for.
    """

    threshold: float
    shown: int
    accepted: int
    bound: float


def smallest_threshold(
    probabilities: Sequence[float], accepted: Sequence[bool], wanted: float, confidence: float = CONFIDENCE
) -> Promise | None:
    """The smallest threshold at which the wanted share is accepted, with this confidence; None if none is proven.

    Args:
        probabilities: of suggestions that were not fitted to.
        accepted: what became of them.
        wanted: acceptance rate, 0 to 1.
        confidence: that the promise holds.
    """
    best: Promise | None = None
    pairs = sorted(zip(probabilities, accepted, strict=True), reverse=True)
    at = taken = 0
    for threshold in GRID:
        while at < len(pairs) and pairs[at][0] >= threshold:
            taken += pairs[at][1]
            at += 1
        if at < FEWEST:
            continue
        if not _proves(taken, at, wanted, confidence):
            break
        best = Promise(threshold, at, taken, wanted)
    return None if best is None else replace(best, bound=lower_bound(best.accepted, best.shown, confidence))


def needed(wanted: float, rate: float, confidence: float = CONFIDENCE, most: int = 10_000) -> int | None:
    """How many shown suggestions would prove `wanted`, if `rate` of them are accepted; None when no number does."""
    if rate <= wanted:
        return None
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if _proves(int(rate * middle), middle, wanted, confidence):
            high = middle
        else:
            low = middle + 1
    return low if low < most else None


def lower_bound(successes: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """The one-sided lower bound of Clopper and Pearson for a share."""
    if successes <= 0 or trials <= 0:
        return 0.0
    return _bisect(lambda share: at_least(successes, trials, share) < 1 - confidence)


def upper_bound(successes: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """The one-sided upper bound of Clopper and Pearson for a share."""
    return 1.0 - lower_bound(trials - successes, trials, confidence) if trials > 0 else 1.0


def _proves(successes: int, trials: int, wanted: float, confidence: float) -> bool:
    """Whether the lower bound is at least `wanted`, without computing it."""
    return at_least(successes, trials, wanted) <= 1 - confidence


def at_least(successes: int, trials: int, share: float) -> float:
    """Probability of so many successes or more, each trial succeeding with probability `share`."""
    if successes <= 0:
        return 1.0
    if share <= 0.0:
        return 0.0
    if share >= 1.0:
        return 1.0
    log, rest = math.log(share), math.log1p(-share)
    terms = (
        math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
        + count * log + (trials - count) * rest
        for count in range(successes, trials + 1)
    )  # fmt: skip
    return min(1.0, math.fsum(math.exp(term) for term in terms))


def _bisect(is_low: Callable[[float], bool]) -> float:
    """The share at which a falling truth becomes false, between 0 and 1."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if is_low(middle):
            low = middle
        else:
            high = middle
    return low
