"""From the question to the answer, and what the model had to compute for it."""

from __future__ import annotations

import numpy as np

from calomel.bench.stats import Interval
from calomel.replay.metrics.offers import Offers
from calomel.replay.opportunity import Opportunity
from calomel.replay.resampling import Items, Resampling

PERCENTILES = (50, 95, 99)


def latencies(offers: Offers, resampling: Resampling) -> dict[str, Interval | None]:
    """Milliseconds, over the opportunities for which a model was asked."""
    values = np.asarray([item.latency_ms for item in offers.items], dtype=np.float64)
    asked = [number for number, item in enumerate(offers.ours) if was_asked(item)]
    found: dict[str, Interval | None] = {}
    for percent in PERCENTILES:

        def percentile(items: Items, percent: int = percent) -> float | None:
            return float(np.percentile(values[items], percent)) if len(items) else None

        found[f"latency_p{percent}_ms"] = resampling.statistic(asked, percentile)
    return found


def tokens(offers: Offers, resampling: Resampling) -> dict[str, Interval | None]:
    """Tokens computed and taken from the cache for a question, and the share of the cache."""
    asked = offers.flags([was_asked(item) for item in offers.ours])
    rest = [0.0] * len(offers.theirs)
    computed = [*(float(item.computed_tokens) for item in offers.ours), *rest]
    cached = [*(float(item.cached_tokens) for item in offers.ours), *rest]
    return {
        "computed_tokens": resampling.ratio(computed, asked),
        "cached_tokens": resampling.ratio(cached, asked),
        "cached_share": resampling.ratio(cached, [one + other for one, other in zip(computed, cached, strict=True)]),
    }


def was_asked(item: Opportunity) -> bool:
    """A model worked for it, or an answer of a model was taken again."""
    return item.candidate is not None or item.computed_tokens + item.cached_tokens > 0
