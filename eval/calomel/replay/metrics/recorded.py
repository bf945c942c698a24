"""Ours beside the assistant that was recorded, under the same simulated user and at the same shown rate.

For the recorded assistant this is an upper bound: a text that was accepted stands in the log because it was offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from calomel.bench.stats import Interval, wilson
from calomel.replay.metrics.offers import Offers, judged, seen
from calomel.replay.opportunity import LogResult, Opportunity
from calomel.replay.resampling import Resampling


def recorded(
    offers: Offers, resampling: Resampling, results: Sequence[LogResult]
) -> tuple[dict[str, Interval | None], dict[str, int]]:
    """Figures of the recorded assistant and ours at its rate, their differences, and counts. Empty without offers.

    Our surest suggestions are taken, as many as it showed; which ones is not drawn anew in the intervals.
    """
    shown_by_it = sum(seen(item) is not None for item in offers.theirs)
    accepts, real = sum(result.real_accepts for result in results), sum(result.real_offers for result in results)
    if not shown_by_it:
        return {}, {}
    own = _surest(offers.ours, shown_by_it)
    ours = _columns(offers.ours, own)
    rest, zeros = [0.0] * len(offers.theirs), [0.0] * offers.own
    theirs = _columns(offers.theirs, [seen(item) is not None for item in offers.theirs])
    mine = {name: [*values, *rest] for name, values in ours.items()}
    its = {name: [*zeros, *values] for name, values in theirs.items()}
    there = offers.flags([True] * offers.own)
    figures = {
        "recorded_shown_rate": resampling.share(its["shown"], there),
        "recorded_acceptance_same_rule": resampling.share(its["accepted"], its["shown"]),
        "acceptance_at_recorded_rate": resampling.share(mine["accepted"], mine["shown"]),
        "acceptance_difference_at_recorded_rate": resampling.difference(
            (mine["accepted"], mine["shown"]), (its["accepted"], its["shown"])
        ),
        "recorded_kept_rate": resampling.share(its["kept"], its["followed"]),
        "kept_rate_at_recorded_rate": resampling.share(mine["kept"], mine["followed"]),
        "recorded_characters_per_opportunity": resampling.ratio(its["saved"], there),
        "characters_per_opportunity_at_recorded_rate": resampling.ratio(mine["saved"], there),
        "characters_difference_at_recorded_rate": resampling.difference((mine["saved"], there), (its["saved"], there)),
        "real_acceptance_rate": wilson(min(accepts, real), real),
    }
    counts = {
        "recorded_shown": shown_by_it,
        "shown_at_recorded_rate": sum(own),
        "real_accepts": accepts,
        "real_offers": real,
    }
    return figures, counts


def _surest(items: Sequence[Opportunity], count: int) -> list[bool]:
    """Which suggestions that a person could have decided about are the `count` surest; of equals the earlier ones.

    While the person writes what one of them proposed, another one of the same file would not have been asked for: the
    less sure of two such is left out, so that no character is saved twice.
    """
    ranked = sorted(
        (-shown.confidence if isfinite(shown.confidence) else 0.0, number)
        for number, item in enumerate(items)
        if (shown := judged(item)) is not None
    )
    chosen: set[int] = set()
    spans: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _, number in ranked:
        if len(chosen) == count:
            break
        item = items[number]
        given = None if item.candidate is None else item.candidate.given
        span = (item.time, item.time if given is None else given)
        taken = spans.setdefault((item.log, item.path), [])
        if any(span[0] < last and first < span[1] for first, last in taken):
            continue
        taken.append(span)
        chosen.add(number)
    return [number in chosen for number in range(len(items))]


def _columns(items: Sequence[Opportunity], taken_part: Sequence[bool]) -> dict[str, list[float]]:
    columns: dict[str, list[float]] = {name: [] for name in ("shown", "accepted", "kept", "followed", "saved")}
    for item, chosen in zip(items, taken_part, strict=True):
        shown = judged(item) if chosen else None
        followed = shown is not None and shown.outcome != "rejected" and shown.kept is not None
        columns["shown"].append(float(shown is not None))
        columns["accepted"].append(float(shown is not None and shown.outcome == "accepted"))
        columns["followed"].append(float(followed))
        columns["kept"].append(float(followed and shown is not None and shown.kept is True))
        columns["saved"].append(0.0 if shown is None else float(shown.saved_characters))
    return columns
