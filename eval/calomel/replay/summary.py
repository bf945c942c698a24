"""All figures of a replay, by name, each with its 95 % bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from calomel.bench.stats import Interval
from calomel.replay.metrics.calibration import reliability
from calomel.replay.metrics.characters import characters
from calomel.replay.metrics.confidence import columns, confidence
from calomel.replay.metrics.latency import latencies, tokens, was_asked
from calomel.replay.metrics.makers import makers
from calomel.replay.metrics.offers import offers_of
from calomel.replay.metrics.quality import quality
from calomel.replay.metrics.rates import is_seen, rates
from calomel.replay.metrics.recorded import recorded
from calomel.replay.metrics.selectivity import precision_coverage
from calomel.replay.metrics.steps import steps
from calomel.replay.opportunity import LogResult
from calomel.replay.resampling import Resampling

# Present in every summary, null for logs without a recorded assistant.
RECORDED = (
    "recorded_shown_rate",
    "recorded_acceptance_same_rule",
    "acceptance_at_recorded_rate",
    "acceptance_difference_at_recorded_rate",
    "recorded_kept_rate",
    "kept_rate_at_recorded_rate",
    "recorded_characters_per_opportunity",
    "characters_per_opportunity_at_recorded_rate",
    "characters_difference_at_recorded_rate",
    "real_acceptance_rate",
)


def summarize(results: Sequence[LogResult], seed: int = 0) -> dict[str, Any]:
    """Every figure as `name`, `name_low`, `name_high`, and counts by name; null where nothing was observed.

    `silences` counts the reasons for showing nothing, `makers` what became of each maker's proposals;
    `precision_coverage` and `reliability` are the points of plots.
    """
    offers = offers_of(results)
    resampling = Resampling(offers.clusters, seed)
    # Superseded ones came too late to be on the screen; of all others, what was there counts.
    outcomes = Counter(
        item.candidate.outcome
        for item in offers.ours
        if item.candidate is not None and (item.shown or item.candidate.outcome == "superseded")
    )
    at_its_rate, its_counts = recorded(offers, resampling, results)
    figures: dict[str, Interval | None] = {
        **rates(offers, resampling),
        **characters(offers, resampling),
        **quality(offers, resampling),
        **confidence(offers, resampling),
        **latencies(offers, resampling),
        **tokens(offers, resampling),
        **steps(offers, resampling),
        **{name: at_its_rate.get(name) for name in RECORDED},
        **at_its_rate,
    }
    surely, taken = columns(offers.ours)
    summary: dict[str, Any] = {
        "logs": len(results),
        "active_minutes": offers.minutes,
        "typed_characters": offers.typed,
        "steps": sum(item.steps for item in offers.ours),
        "rows": sum(item.rows for item in offers.ours),
        "opportunities": offers.own,
        "asked": sum(map(was_asked, offers.ours)),
        "candidates": sum(item.candidate is not None for item in offers.ours),
        "shown": sum(map(is_seen, offers.ours)),
        **{outcome: outcomes[outcome] for outcome in ("accepted", "partly", "rejected", "superseded", "too_short")},
        **its_counts,
        "content_ids_right": sum(result.checks.content_ids_right for result in results),
        "content_ids_wrong": sum(result.checks.content_ids_wrong for result in results),
        "problems": sum(len(result.problems) for result in results),
        "logs_stopped": sum(bool(result.error) for result in results),
        "seed": seed,
    }
    for name, interval in figures.items():
        summary[name] = None if interval is None else interval.value
        summary[f"{name}_low"] = None if interval is None else interval.low
        summary[f"{name}_high"] = None if interval is None else interval.high
    silences = Counter(item.silence for item in offers.ours if item.silence is not None)
    summary["silences"] = dict(sorted(silences.items(), key=lambda item: (-item[1], item[0])))
    summary["makers"] = makers(offers.ours)
    summary["precision_coverage"] = [point._asdict() for point in precision_coverage(surely, taken)]
    summary["reliability"] = [each._asdict() for each in reliability(surely, taken)]
    return summary


def document(results: Sequence[LogResult], seed: int = 0, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What `--json` writes: the options, the figures, and every opportunity, so that runs can be compared pairwise."""
    return {**(options or {}), **summarize(results, seed), "results": [result.to_json() for result in results]}
