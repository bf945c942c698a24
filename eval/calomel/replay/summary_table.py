"""The figures of a replay as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.table import Table

from calomel.replay.metrics.makers import COLUMNS

# Name, words, and how it is written: a share in percent, or digits behind the point.
_ROWS: Final[tuple[tuple[str, str, int | None], ...]] = (
    ("characters_per_opportunity", "characters saved per opportunity", 3),
    ("accepted_characters_per_opportunity", "characters accepted per opportunity", 3),
    ("saved_share", "typed characters saved", None),
    ("shown_rate", "shown of opportunities", None),
    ("acceptance_rate", "accepted of shown", None),
    ("partly_rate", "partly accepted of shown", None),
    ("kept_rate", "kept of accepted", None),
    ("wasted_per_minute", "wasted per minute of typing", 2),
    ("exact_match", "exact match", None),
    ("delta_chrf", "delta-chrF", 1),
    ("line_f1", "line F1", 3),
    ("reversal_ratio", "reversal ratio", 3),
    ("position_error", "position error, lines", 2),
    ("no_op_rate", "no-ops", None),
    ("parse_error_delta", "parse errors added", 3),
    ("auroc", "AUROC", 3),
    ("aurc", "AURC", 3),
    ("ece", "ECE", 3),
    ("brier", "Brier", 3),
    ("latency_p50_ms", "latency p50, ms", 0),
    ("latency_p95_ms", "latency p95, ms", 0),
    ("latency_p99_ms", "latency p99, ms", 0),
    ("computed_tokens", "tokens computed per question", 0),
    ("cached_tokens", "tokens cached per question", 0),
    ("steps_per_question", "steps of the engine per question", 2),
    ("steps_per_accepted_token", "steps per accepted token", 1),
    ("steps_per_accepted_character", "steps per accepted character", 1),
)
_RECORDED: Final[tuple[tuple[str, str, str, int | None], ...]] = (
    ("accepted of shown", "acceptance_at_recorded_rate", "recorded_acceptance_same_rule", None),
    ("kept of accepted", "kept_rate_at_recorded_rate", "recorded_kept_rate", None),
    (
        "characters saved per opportunity",
        "characters_per_opportunity_at_recorded_rate",
        "recorded_characters_per_opportunity",
        3,
    ),
)
_DIFFERENCES: Final = {
    "acceptance_at_recorded_rate": "acceptance_difference_at_recorded_rate",
    "characters_per_opportunity_at_recorded_rate": "characters_difference_at_recorded_rate",
}
_COUNTS: Final = ("opportunities", "candidates", "shown", "accepted", "partly", "rejected", "superseded", "too_short")


def render_tables(summary: Mapping[str, Any]) -> list[Table]:
    """The figures; beside a recorded assistant, where one was; why nothing was shown."""
    tables = [_figures(summary)]
    if summary.get("recorded_shown"):
        tables.append(_recorded(summary))
    if summary.get("makers"):
        table = Table("maker", *COLUMNS, title="Makers of suggestions", title_justify="left")
        for row in maker_rows(summary):
            table.add_row(*row)
        tables.append(table)
    if summary.get("silences"):
        silences = Table("silence", "times", title="Why nothing was shown", title_justify="left")
        for reason, count in summary["silences"].items():
            silences.add_row(reason, f"{count:,}")
        tables.append(silences)
    return tables


def cell(summary: Mapping[str, Any], name: str, digits: int | None) -> str:
    """A figure with its bounds, or a dash."""
    value, low, high = (summary.get(f"{name}{end}") for end in ("", "_low", "_high"))
    if value is None:
        return "-"
    text = _number(value, digits)
    return text if low is None or high is None else f"{text} [{_number(low, digits)}, {_number(high, digits)}]"


def figure_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Words and figure of all that was observed."""
    return [(words, cell(summary, name, digits)) for name, words, digits in _ROWS if summary.get(name) is not None]


def maker_rows(summary: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Each maker with its counts."""
    found = summary.get("makers", {})
    return [(maker, *(f"{counts[name]:,}" for name in COLUMNS)) for maker, counts in found.items()]


def recorded_rows(summary: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Words, ours, the recorded assistant's, and the difference, at its shown rate."""
    return [
        (
            words,
            cell(summary, ours, digits),
            cell(summary, theirs, digits),
            cell(summary, _DIFFERENCES.get(ours, ""), digits),
        )
        for words, ours, theirs, digits in _RECORDED
    ]


def counts_line(summary: Mapping[str, Any]) -> str:
    """How many of each, in one line."""
    return ", ".join(f"{name.replace('_', ' ')} {summary.get(name, 0):,}" for name in _COUNTS)


def _figures(summary: Mapping[str, Any]) -> Table:
    table = Table("figure", "value [95 % interval]", title="Replay", title_justify="left", caption=counts_line(summary))
    for words, text in figure_rows(summary):
        table.add_row(words, text)
    return table


def _recorded(summary: Mapping[str, Any]) -> Table:
    clicks = cell(summary, "real_acceptance_rate", None)
    table = Table(
        "",
        f"ours, the {summary['shown_at_recorded_rate']:,} surest",
        f"recorded, its {summary['recorded_shown']:,}",
        "difference",
        title="At the recorded assistant's shown rate, under the same simulated user",
        title_justify="left",
        caption=f"its real clicks: {summary['real_accepts']:,} of {summary['real_offers']:,}, {clicks}",
    )
    for row in recorded_rows(summary):
        table.add_row(*row)
    return table


def _number(value: float, digits: int | None) -> str:
    return f"{value:.1%}" if digits is None else f"{value:,.{digits}f}"
