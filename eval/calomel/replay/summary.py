"""All figures of a replay by name, each with its 95 % bounds: as tables, as a page, and in comparison with another run.

The page is one self-contained file, with a policy that allows only its own style and script.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
from cattrs import BaseValidationError
from jinja2 import Environment, StrictUndefined

from calomel.replay.figures import (
    FIGURES,
    MAKER_COUNTS,
    STEPS,
    Of,
    Offers,
    confidences,
    has_outcome,
    makers,
    measure,
    recorded,
    seen,
    was_asked,
)
from calomel.replay.opportunity import LogResult, Opportunity
from calomel.report.result import CONVERTER, Flat, Resampling, Table, flat_cell, interval_cell, put_interval
from calomel.selectivity.sample import reliability
from calomel.storage import write_whole
from calomel.storage.failures import cause
from calomel.suggest.silence import SilenceReason

_MOST_PROBLEMS: Final = 200
_MOST_NAMES: Final = 5


def render_report(results: Sequence[LogResult], summary: Flat, title: str = "Replay") -> str:
    """The page as text. `summary` is from `calomel.replay.summary.summarize`, or a document that holds it."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    environment.filters["hash"] = _hash
    return environment.from_string(_resource("page.html")).render(
        title=title,
        style=_resource("page.css"),
        script=_resource("page.js"),
        about=_about(results, summary),
        tables=[*listings(summary), *_reliability(summary)],
        problems=_problems(results),
        suggestions=suggestions(results),
    )


def write_report(path: Path, results: Sequence[LogResult], summary: Flat, title: str = "Replay") -> None:
    """Write the page; missing folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, render_report(results, summary, title))


def suggestions(results: Sequence[LogResult]) -> list[dict[str, Any]]:
    """Every suggestion, held-back ones included, with its opportunity, in the form that the page's script reads.

    Ours, then the recorded assistants', log by log in the order of time.
    """
    items = [item for result in results for item in (*result.opportunities, *result.recorded)]
    plain: list[dict[str, Any]] = CONVERTER.unstructure([item for item in items if item.candidate is not None])
    return [{**each, **each["candidate"], "candidate": None} for each in plain]


def _about(results: Sequence[LogResult], summary: Flat) -> str:
    names = ", ".join(result.log for result in results[:_MOST_NAMES]) + (" …" if len(results) > _MOST_NAMES else "")
    logs = "1 log" if len(results) == 1 else f"{len(results):,} logs"
    return f"{logs}: {names}. {summary['active_minutes']:.0f} minutes of typing. {counts_line(summary)}."


def _reliability(summary: Flat) -> list[Table]:
    rows = [
        (
            f"{each['low']:.1f} to {each['high']:.1f}",
            f"{each['size']:,}",
            f"{each['confidence']:.2f}",
            f"{each['taken']:.1%}",
        )
        for each in summary["reliability"]
    ]
    columns = ("confidence", "suggestions", "mean confidence", "accepted")
    return [Table("Reliability of the confidence", columns, rows)] if rows else []


def _problems(results: Sequence[LogResult]) -> Table:
    rows = [(result.log, str(problem.entry), problem.message) for result in results for problem in result.problems]
    rows += [(result.log, "-", result.error) for result in results if result.error]
    more = [("…", "", f"and {len(rows) - _MOST_PROBLEMS:,} more")] if len(rows) > _MOST_PROBLEMS else []
    return Table("Problems of the logs", ("log", "entry", "problem"), rows[:_MOST_PROBLEMS] + more)


def _resource(name: str) -> str:
    return (files("calomel.replay") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


_OUTCOMES: Final = ("accepted", "partly", "rejected", "superseded", "too_short")
# Rows of the table: name, words, and format: a share in percent, or a number of decimals.
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
    """Every figure as `name`, `name_low`, `name_high`, `name_n`, counts by name; null where nothing was observed.

    `silences` counts the reasons for showing nothing, `makers` what became of each maker's proposals, `reliability` has
    the share accepted by confidence.
    """
    offers = Offers.of(results)
    resampling = offers.resampling(seed)
    # Superseded ones came too late to be on the screen; for all others, what was there counts.
    outcomes = Counter(
        item.candidate.outcome
        for item in offers.ours
        if item.candidate is not None and (item.shown or item.candidate.outcome == "superseded")
    )
    at_its_rate, its_counts = recorded(offers, resampling, results)
    figures = {**measure(offers, resampling), **at_its_rate}
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
        put_interval(summary, name, interval)
    silences = Counter(item.silence for item in offers.ours if item.silence is not None)
    summary["silences"] = dict(sorted(silences.items(), key=lambda item: (-item[1], item[0])))
    summary["makers"] = makers(offers.ours)
    decided, scores, taken = confidences(offers.ours)
    chosen = np.asarray(decided, dtype=np.int64)
    summary["reliability"] = [each._asdict() for each in reliability(scores[chosen], taken[chosen])]
    return summary


def document(results: Sequence[LogResult], seed: int = 0, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The output of `--json`: options, figures, and every opportunity, so that runs can be compared pairwise."""
    return {**(options or {}), **summarize(results, seed), "results": CONVERTER.unstructure(results)}


def listings(summary: Flat) -> list[Table]:
    """The figures; a comparison with a recorded assistant, if any; suggestions by maker; why nothing was shown."""
    rows = [(words, flat_cell(summary, name, digits)) for name, words, digits in _ROWS if summary[name] is not None]
    found = [Table("Replay", ("figure", "value [95 % interval]"), rows, counts_line(summary))]
    if summary.get("recorded_shown"):
        columns = (
            "",
            f"ours, the {summary['shown_at_recorded_rate']:,} surest",
            f"recorded, its {summary['recorded_shown']:,}",
            "difference",
        )
        beside = [
            (words, *(flat_cell(summary, name, digits) for name in (ours, theirs, difference)))
            for words, ours, theirs, difference, digits in _BESIDE
        ]
        clicks = flat_cell(summary, "real_acceptance_rate", None)
        caption = f"its real clicks: {summary['real_accepts']:,} of {summary['real_offers']:,}, {clicks}"
        title = "At the recorded assistant's shown rate, under the same simulated user"
        found.append(Table(title, columns, beside, caption))
    counted = [(maker, *(f"{counts[name]:,}" for name in MAKER_COUNTS)) for maker, counts in summary["makers"].items()]
    silences = [(reason, f"{count:,}") for reason, count in summary["silences"].items()]
    more = (
        Table("Sources of suggestions", ("source", *MAKER_COUNTS), counted),
        Table("Why nothing was shown", ("reason", "times"), silences),
    )
    return [*found, *(each for each in more if each.rows)]


def sentence(summary: Flat) -> str:
    """What a person would have seen, accepted and saved, and why nothing came at the other pauses."""
    accepted = summary["accepted"] + summary["partly"]
    saved = summary["saved_share"]
    seen = f"you would have seen {_counted(summary['shown'], 'suggestion')}"
    took = f" and accepted {accepted:,}" if saved is None else f", accepted {accepted:,}, saved {saved:.1%} of typing"
    said = f"At {_counted(summary['opportunities'], 'pause')} {seen}{took}."
    reasons = [each for each in summary["silences"].items() if each[0] != SilenceReason.SUPERSEDED]
    if reasons:
        reason, times = reasons[0]
        said += f" Mostly nothing appeared because of this: {SilenceReason(reason).message} ({_counted(times, 'time')})"
    return said


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def counts_line(summary: Mapping[str, Any]) -> str:
    """The counts in one line."""
    names = ("opportunities", "candidates", "shown", *_OUTCOMES)
    return ", ".join(f"{name.replace('_', ' ')} {summary.get(name, 0):,}" for name in names)


# Two runs: over opportunities of both, then of each run by itself, with digits.
_PAIRED: Final[dict[str, Of]] = {
    "characters_per_opportunity": FIGURES["characters_per_opportunity"].of,
    "shown_rate": FIGURES["shown_rate"].of,
    "accepted_per_opportunity": has_outcome("accepted"),
    "wasted_per_opportunity": has_outcome("rejected"),
    "latency_ms": lambda item: item.latency_ms,
}
_UNPAIRED: Final = {"acceptance_rate": None, "kept_rate": None, "auroc": 3, "aurc": 3, "ece": 3, "latency_p95_ms": 0}


class ComparisonError(Exception):
    """Two files cannot be compared; the message is a sentence for the user."""


def compare(first: Flat, second: Flat, seed: int = 0) -> Table:
    """What changed from one of `document` to another, opportunity by opportunity where both had the same one.

    An interval that contains 0 shows no change. Raises ComparisonError.
    """
    ours, theirs = _opportunities(first, "first"), _opportunities(second, "second")
    both = [key for key in ours if key in theirs]
    resampling = Resampling([(ours[key].log, int(ours[key].time // 60)) for key in both], seed)
    rows: list[tuple[str, ...]] = []
    for name, of in _PAIRED.items():
        changes = [(of(theirs[key]) or 0.0) - (of(ours[key]) or 0.0) for key in both]
        change = interval_cell(resampling.ratio(changes, [1.0] * len(both)), 3)
        rows.append((name, *(flat_cell(run, name, 3) for run in (first, second)), change))
    rows += [
        (name, *(flat_cell(run, name, digits) for run in (first, second)), "-") for name, digits in _UNPAIRED.items()
    ]
    caption = (
        f"{len(both):,} opportunities in both, {len(ours) - len(both):,} only in the first, "
        f"{len(theirs) - len(both):,}only in the second"
    )
    return Table("Two runs", ("figure", "first", "second", "second less first, paired"), rows, caption)


def _opportunities(run: Flat, which: str) -> dict[tuple[str, int, str, str], Opportunity]:
    try:
        results = CONVERTER.structure(run["results"], list[LogResult])
    except (KeyError, TypeError, BaseValidationError) as error:
        raise ComparisonError(f"the {which} file is not a result of `calomel replay --json`: {cause(error)}") from error
    items = [item for result in results for item in result.opportunities]
    return {(item.log, item.entry, item.kind, item.name): item for item in items}
