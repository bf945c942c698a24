"""How often something was shown, taken and kept, and how often it was in the way."""

from __future__ import annotations

from calomel.bench.stats import Interval
from calomel.replay.metrics.offers import Offers, seen
from calomel.replay.opportunity import Opportunity
from calomel.replay.resampling import Resampling


def rates(offers: Offers, resampling: Resampling) -> dict[str, Interval | None]:
    """Shown of opportunities; taken, partly taken and kept of those shown; wasted a minute and an opportunity."""
    there = offers.flags([True] * offers.own)
    shown = offers.flags([is_seen(item) for item in offers.ours])
    accepted = offers.flags([is_accepted(item) for item in offers.ours])
    wasted = offers.flags([is_wasted(item) for item in offers.ours])
    return {
        "shown_rate": resampling.share(shown, there),
        "acceptance_rate": resampling.share(accepted, shown),
        "partly_rate": resampling.share(offers.flags([is_partly(item) for item in offers.ours]), shown),
        "kept_rate": resampling.share(
            offers.flags([is_kept(item) for item in offers.ours]),
            offers.flags([was_followed(item) for item in offers.ours]),
        ),
        "wasted_per_opportunity": resampling.share(wasted, there),
        "wasted_per_minute": resampling.rate(wasted, offers.minutes),
    }


def is_seen(item: Opportunity) -> bool:
    """It was on the screen and long enough to count."""
    return seen(item) is not None


def is_accepted(item: Opportunity) -> bool:
    """It was shown and taken whole."""
    found = seen(item)
    return found is not None and found.outcome == "accepted"


def is_partly(item: Opportunity) -> bool:
    """It was shown, and its first line or word was taken."""
    found = seen(item)
    return found is not None and found.outcome == "partly"


def is_wasted(item: Opportunity) -> bool:
    """It was shown, and nothing of it was taken."""
    found = seen(item)
    return found is not None and found.outcome == "rejected"


def was_followed(item: Opportunity) -> bool:
    """It was shown and taken, at least partly, and the log goes on long enough to see what became of it."""
    found = seen(item)
    return found is not None and found.outcome != "rejected" and found.kept is not None


def is_kept(item: Opportunity) -> bool:
    """It was still there later."""
    found = seen(item)
    return was_followed(item) and found is not None and found.kept is True
