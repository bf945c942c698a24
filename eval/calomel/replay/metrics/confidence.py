"""Ranking and calibration of the confidence, over all suggestions that a person could have decided about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Final

import numpy as np

from calomel.bench.stats import Interval
from calomel.replay.metrics.calibration import brier, ece
from calomel.replay.metrics.offers import Offers, judged
from calomel.replay.metrics.selectivity import Floats, aurc, auroc, excess_aurc
from calomel.replay.opportunity import Opportunity, Shown
from calomel.replay.resampling import Items, Resampling

_FIGURES: Final[dict[str, Callable[[Floats, Floats], float | None]]] = {
    "auroc": auroc,
    "aurc": aurc,
    "excess_aurc": excess_aurc,
    "ece": ece,
    "brier": brier,
}


def confidence(offers: Offers, resampling: Resampling) -> dict[str, Interval | None]:
    """Taken means taken whole. Those that the gate held back count, too: otherwise it would judge itself."""
    decided = [number for number, item in enumerate(offers.ours) if _known(item) is not None]
    scores, taken = np.zeros(len(offers.items)), np.zeros(len(offers.items))
    scores[decided], taken[decided] = columns(offers.ours)
    found: dict[str, Interval | None] = {}
    for name, figure in _FIGURES.items():

        def statistic(items: Items, figure: Callable[[Floats, Floats], float | None] = figure) -> float | None:
            return figure(scores[items], taken[items])

        found[name] = resampling.statistic(decided, statistic)
    return found


def columns(items: Sequence[Opportunity]) -> tuple[list[float], list[float]]:
    """Confidence, and 1 or 0 for taken, of the suggestions that a person could have decided about."""
    found = [shown for item in items if (shown := _known(item)) is not None]
    return [shown.confidence for shown in found], [float(shown.outcome == "accepted") for shown in found]


def _known(item: Opportunity) -> Shown | None:
    shown = judged(item)
    return shown if shown is not None and isfinite(shown.confidence) else None
