"""All figures of a replay by name, each with its 95 % bounds; the same as tables; and two runs beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from rich.table import Table

from calomel.replay.figures import (
    FIGURES,
    MAKER_COUNTS,
    RECORDED,
    STEPS,
    Of,
    Offers,
    confidences,
    has_outcome,
    makers,
    measure,
    recorded,
    reliability,
    seen,
    was_asked,
)
from calomel.replay.opportunity import LogResult, Opportunity
from calomel.report.stats import Interval, Resampling

_OUTCOMES: Final = ("accepted", "partly", "rejected", "superseded", "too_short")
# Rows of the table: name, words, and how it is written: a share in percent, or digits behind the point.
_ROWS: Final[tuple[tuple[str, str, int | None], ...]] = (
    *((name, each.words, each.digits) for name, each in FIGURES.items() if each.words),
    ("saved_share", "typed characters saved", None),
    ("wasted_per_minute", "wasted per minute of typing", 2),
    ("auroc", "AUROC", 3),
    ("aurc", "AURC", 3),
    ("ece", "ECE", 3),
    ("brier", "Brier", 3),
    ("latency_p50_ms", "latency p50, ms", 0),
    ("latency_p95_ms", "latency p95, ms", 0),
    ("latency_p99_ms", "latency p99, ms", 0),
    *((name, each.words, each.digits) for name, each in STEPS.items() if each.words),
)
# Words, ours, the recorded assistant's, the difference, digits.
_BESIDE: Final[tuple[tuple[str, str, str, str, int | None], ...]] = (
    (
        "accepted of shown",
        "acceptance_at_recorded_rate",
        "recorded_acceptance_same_rule",
        "acceptance_difference_at_recorded_rate",
        None,
    ),
    ("kept of accepted", "kept_rate_at_recorded_rate", "recorded_kept_rate", "", None),
    (
        "characters saved per opportunity",
        "characters_per_opportunity_at_recorded_rate",
        "recorded_characters_per_opportunity",
        "characters_difference_at_recorded_rate",
        3,
    ),
)


def summarize(results: Sequence[LogResult], seed: int = 0) -> dict[str, Any]:
    """Every figure as `name`, `name_low`, `name_high`, and counts by name; null where nothing was observed.

    `silences` counts the reasons for showing nothing, `makers` what became of each maker's proposals, `reliability` has
    the share accepted by confidence.
    """
    offers = Offers.of(results)
    resampling = offers.resampling(seed)
    # Superseded ones came too late to be on the screen; of all others, what was there counts.
    outcomes = Counter(
        item.candidate.outcome
        for item in offers.ours
        if item.candidate is not None and (item.shown or item.candidate.outcome == "superseded")
    )
    at_its_rate, its_counts = recorded(offers, resampling, results)
    figures = {**measure(offers, resampling), **dict.fromkeys(RECORDED), **at_its_rate}
    summary: dict[str, Any] = {
        "logs": len(results),
        "active_minutes": offers.minutes,
        "typed_characters": offers.typed,
        "steps": sum(item.steps for item in offers.ours),
        "rows": sum(item.rows for item in offers.ours),
        "opportunities": len(offers.ours),
        "asked": sum(map(was_asked, offers.ours)),
        "candidates": sum(item.candidate is not None for item in offers.ours),
        "shown": sum(seen(item) is not None for item in offers.ours),
        **{outcome: outcomes[outcome] for outcome in _OUTCOMES},
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
    decided, scores, taken = confidences(offers.ours)
    chosen = np.asarray(decided, dtype=np.int64)
    summary["reliability"] = [each._asdict() for each in reliability(scores[chosen], taken[chosen])]
    return summary


def document(results: Sequence[LogResult], seed: int = 0, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What `--json` writes: the options, the figures, and every opportunity, so that runs can be compared pairwise."""
    return {**(options or {}), **summarize(results, seed), "results": [result.to_json() for result in results]}


Rows: TypeAlias = Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Listing:
    """A table of ready-made cells, for a terminal or a page."""

    title: str
    columns: tuple[str, ...]
    rows: Rows
    caption: str | None = None

    def to_table(self) -> Table:
        """For a terminal."""
        table = Table(*self.columns, title=self.title, title_justify="left", caption=self.caption)
        for row in self.rows:
            table.add_row(*row)
        return table


def listings(summary: Mapping[str, Any]) -> list[Listing]:
    """The figures; beside a recorded assistant, where one was; whose suggestions; why nothing was shown."""
    rows = [(words, cell(summary, name, digits)) for name, words, digits in _ROWS if summary.get(name) is not None]
    found = [Listing("Replay", ("figure", "value [95 % interval]"), rows, counts_line(summary))]
    if summary.get("recorded_shown"):
        columns = (
            "",
            f"ours, the {summary['shown_at_recorded_rate']:,} surest",
            f"recorded, its {summary['recorded_shown']:,}",
            "difference",
        )
        beside = [
            (words, *(cell(summary, name, digits) for name in (ours, theirs, difference)))
            for words, ours, theirs, difference, digits in _BESIDE
        ]
        clicks = cell(summary, "real_acceptance_rate", None)
        caption = f"its real clicks: {summary['real_accepts']:,} of {summary['real_offers']:,}, {clicks}"
        title = "At the recorded assistant's shown rate, under the same simulated user"
        found.append(Listing(title, columns, beside, caption))
    if summary.get("makers"):
        counted = [
            (maker, *(f"{counts[name]:,}" for name in MAKER_COUNTS)) for maker, counts in summary["makers"].items()
        ]
        found.append(Listing("Makers of suggestions", ("maker", *MAKER_COUNTS), counted))
    if summary.get("silences"):
        silences = [(reason, f"{count:,}") for reason, count in summary["silences"].items()]
        found.append(Listing("Why nothing was shown", ("silence", "times"), silences))
    return found


def cell(summary: Mapping[str, Any], name: str, digits: int | None) -> str:
    """A figure with its bounds, or a dash."""
    value, low, high = (summary.get(f"{name}{end}") for end in ("", "_low", "_high"))
    if value is None:
        return "-"
    text = _number(value, digits)
    return text if low is None or high is None else f"{text} [{_number(low, digits)}, {_number(high, digits)}]"


def counts_line(summary: Mapping[str, Any]) -> str:
    """How many of each, in one line."""
    names = ("opportunities", "candidates", "shown", *_OUTCOMES)
    return ", ".join(f"{name.replace('_', ' ')} {summary.get(name, 0):,}" for name in names)


def _number(value: float, digits: int | None) -> str:
    return f"{value:.1%}" if digits is None else f"{value:,.{digits}f}"


# Two runs.

_PAIRED: Final[dict[str, Of]] = {
    "characters_per_opportunity": FIGURES["characters_per_opportunity"].of,
    "shown_rate": FIGURES["shown_rate"].of,
    "accepted_per_opportunity": has_outcome("accepted"),
    "wasted_per_opportunity": has_outcome("rejected"),
    "latency_ms": lambda item: item.latency_ms,
}
_UNPAIRED: Final = {"acceptance_rate": None, "kept_rate": None, "auroc": 3, "aurc": 3, "ece": 3, "latency_p95_ms": 0}


class ComparisonError(Exception):
    """Two files cannot be compared; the message is a sentence for their user."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from one run to the other.

    Attributes:
        matched: opportunities that both runs had.
        only_first, only_second: those that one had alone.
        differences: second less first, over the matched ones; an interval that contains 0 shows no change.
        first, second: the figures of each.
    """

    matched: int
    only_first: int
    only_second: int
    differences: Mapping[str, Interval]
    first: Mapping[str, Any]
    second: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Counts and differences by name."""
        return {
            "matched": self.matched,
            "only_first": self.only_first,
            "only_second": self.only_second,
            "differences": {name: asdict(interval) for name, interval in self.differences.items()},
        }

    def to_table(self) -> Table:
        """For a terminal."""
        runs = (self.first, self.second)
        rows: list[tuple[str, ...]] = []
        for name, interval in self.differences.items():
            change = f"{interval.value:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
            rows.append((name, *(cell(run, name, 3) for run in runs), change))
        rows += [(name, *(cell(run, name, digits) for run in runs), "-") for name, digits in _UNPAIRED.items()]
        caption = (
            f"{self.matched:,} opportunities in both, {self.only_first:,} in the first alone, "
            f"{self.only_second:,} in the second alone"
        )
        return Listing("Two runs", ("figure", "first", "second", "second less first, paired"), rows, caption).to_table()


def compare(first: Mapping[str, Any], second: Mapping[str, Any], seed: int = 0) -> Comparison:
    """Two of `document`, opportunity by opportunity where both had the same one. Raises ComparisonError."""
    ours, theirs = _opportunities(first, "first"), _opportunities(second, "second")
    both = [key for key in ours if key in theirs]
    resampling = Resampling([(ours[key].log, int(ours[key].time // 60)) for key in both], seed)
    differences = {}
    for name, of in _PAIRED.items():
        changes = [(of(theirs[key]) or 0.0) - (of(ours[key]) or 0.0) for key in both]
        interval = resampling.ratio(changes, [1.0] * len(both))
        if interval is not None:
            differences[name] = interval
    return Comparison(len(both), len(ours) - len(both), len(theirs) - len(both), differences, first, second)


def _opportunities(run: Mapping[str, Any], which: str) -> dict[tuple[str, int, str, str], Opportunity]:
    try:
        items = [item for result in run["results"] for item in LogResult.from_json(result).opportunities]
    except (KeyError, TypeError, AttributeError) as error:
        raise ComparisonError(f"the {which} file is no result of `calomel replay --json`: {error!r}") from error
    return {(item.log, item.entry, item.kind, item.name): item for item in items}
