"""Keystrokes that suggestions would have saved: the main figure, since accepting many short ones saves few."""

from __future__ import annotations

from collections.abc import Sequence

from calomel.bench.stats import Interval
from calomel.replay.metrics.offers import Offers, seen
from calomel.replay.opportunity import Opportunity
from calomel.replay.resampling import Resampling


def characters(offers: Offers, resampling: Resampling) -> dict[str, Interval | None]:
    """Saved and accepted characters an opportunity, and the share of what was typed that was saved."""
    there = offers.flags([True] * offers.own)
    rest = [0.0] * len(offers.theirs)
    saved = [*saved_characters(offers.ours), *rest]
    accepted = [*(float(found.accepted_characters) if (found := seen(item)) else 0.0 for item in offers.ours), *rest]
    return {
        "characters_per_opportunity": resampling.ratio(saved, there),
        "accepted_characters_per_opportunity": resampling.ratio(accepted, there),
        "saved_share": resampling.rate(saved, offers.typed),
    }


def saved_characters(items: Sequence[Opportunity]) -> list[float]:
    """Of each item; 0 for one that was not shown."""
    return [float(found.saved_characters) if (found := seen(item)) else 0.0 for item in items]
