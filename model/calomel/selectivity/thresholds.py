"""What the names of thresholds mean: promises about suggestions, which come to another number for each model.

* `balanced` shows as little as it can while it loses at most one in twenty of those that would have been accepted.
  (T-Bank's filter for code completion was built under the same bound.)
* `eager` loses at most one in a hundred.
* `quiet` shows what is more likely accepted than not.

One number for all kinds: with one scale of probability, that shows least for what it loses.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from calomel.selectivity.sample import Sample

BALANCED_LOSS: Final = 0.05
EAGER_LOSS: Final = 0.01
QUIET: Final = 0.5


def named_thresholds(samples: Sequence[Sample], probabilities: Sequence[float]) -> dict[str, float]:
    """Of samples and what a calibrator that was not fitted to them says; empty when none was accepted."""
    best = surest(samples, probabilities)
    taken = sorted(probability for sample, probability in best if sample.accepted)
    if not taken:
        return {}
    balanced = losing(taken, BALANCED_LOSS)
    return {"quiet": max(balanced, QUIET), "balanced": balanced, "eager": min(balanced, losing(taken, EAGER_LOSS))}


def losing(taken: Sequence[float], share: float) -> float:
    """The highest threshold that loses at most this share of what was accepted.

    Args:
        taken: probabilities of what was accepted, ascending, at least one.
        share: 0 to 1.
    """
    # Rounded down: nothing more is lost.
    return math.floor(taken[int(share * len(taken))] * 1e3) / 1e3


def surest(samples: Sequence[Sample], probabilities: Sequence[float]) -> list[tuple[Sample, float]]:
    """Of each question the likeliest candidate, which is the one that would be shown, in the order of questions."""
    found: dict[str, list[tuple[Sample, float]]] = defaultdict(list)
    for sample, probability in zip(samples, probabilities, strict=True):
        found[sample.question].append((sample, probability))
    return [max(candidates, key=lambda each: each[1]) for candidates in found.values()]
