"""The page: one file, no source outside of it, and a policy that allows its own style and script and nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from calomel.replay.metrics.makers import COLUMNS
from calomel.replay.opportunity import LogResult
from calomel.replay.summary_table import cell, counts_line, figure_rows, maker_rows, recorded_rows
from calomel.report.plots import latency_plot, precision_coverage_plot, reliability_plot, timeline_plot
from calomel.report.suggestions import as_data_block, suggestions

_OUTCOMES: Final = ("accepted", "partly", "rejected", "superseded", "too_short")
_MOST_PROBLEMS: Final = 200


def render_report(results: Sequence[LogResult], summary: Mapping[str, Any], title: str = "Replay") -> str:
    """The page as text. `summary` is of `calomel.replay.summary.summarize`, or a document that holds it."""
    style, script = _resource("page.css"), _resource("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            f"<h1>{escape(title)}</h1>",
            f'<p class="about">{escape(_about(results, summary))}</p>',
            _plots(results, summary),
            _figures(summary),
            _problems(results),
            _FILTERS,
            '<p class="faint" id="count"></p>',
            '<section id="suggestions"></section>',
            "<noscript><p>The list needs JavaScript; this page loads nothing from elsewhere.</p></noscript>",
            f'<script type="application/json" id="suggestions-data">{as_data_block(suggestions(results))}</script>',
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def write_report(path: Path, results: Sequence[LogResult], summary: Mapping[str, Any], title: str = "Replay") -> None:
    """Write the page; folders on the way are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_report(results, summary, title), encoding="utf-8")


def _about(results: Sequence[LogResult], summary: Mapping[str, Any]) -> str:
    names = ", ".join(result.log for result in results[:5]) + (" …" if len(results) > 5 else "")  # noqa: PLR2004
    logs = "1 log" if len(results) == 1 else f"{len(results):,} logs"
    return f"{logs}: {names}. {summary['active_minutes']:.0f} minutes of typing. {counts_line(summary)}."


def _plots(results: Sequence[LogResult], summary: Mapping[str, Any]) -> str:
    legend = "".join(
        f'<span><i class="outcome-{name}"></i>{escape(name.replace("_", " "))}</span>' for name in _OUTCOMES
    )
    plots = (
        ("Precision by coverage", precision_coverage_plot(summary)),
        ("Reliability of the confidence", reliability_plot(summary)),
        (f'Shown over time <span class="legend">{legend}</span>', timeline_plot(results)),
        ("Latency", latency_plot(summary, results)),
    )
    inside = "".join(f"<figure><figcaption>{caption}</figcaption>{plot}</figure>" for caption, plot in plots)
    return f'<div class="plots">{inside}</div>'


def _figures(summary: Mapping[str, Any]) -> str:
    parts = [_table("Figures", ("", "value [95 % interval]"), figure_rows(summary))]
    if summary.get("recorded_shown"):
        head = (
            "at the recorded shown rate",
            f"ours, the {summary['shown_at_recorded_rate']:,} surest",
            f"recorded, its {summary['recorded_shown']:,}",
            "difference",
        )
        clicks = (
            f"{summary['real_accepts']:,} of {summary['real_offers']:,}, {cell(summary, 'real_acceptance_rate', None)}"
        )
        rows = [*recorded_rows(summary), ("its real clicks", "-", clicks, "-")]
        parts.append(_table("Beside the recorded assistant", head, rows))
    made = maker_rows(summary)
    if made:
        parts.append(_table("Makers of suggestions", ("maker", *COLUMNS), made))
    silences = [(reason, f"{count:,}") for reason, count in summary.get("silences", {}).items()]
    if silences:
        parts.append(_table("Why nothing was shown", ("reason", "times"), silences))
    return f'<div class="columns">{"".join(parts)}</div>'


def _problems(results: Sequence[LogResult]) -> str:
    rows = [(result.log, str(problem.entry), problem.message) for result in results for problem in result.problems]
    rows += [(result.log, "-", result.error) for result in results if result.error]
    if not rows:
        return ""
    more = [("…", "", f"and {len(rows) - _MOST_PROBLEMS:,} more")] if len(rows) > _MOST_PROBLEMS else []
    return _table("Problems of the logs", ("log", "entry", "problem"), rows[:_MOST_PROBLEMS] + more)


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(each)}</th>" for each in head)
    body = "".join(
        "<tr>" + "".join(f'<td class="number">{escape(each)}</td>' for each in row) + "</tr>" for row in rows
    )
    return (
        f"<section><h2>{escape(title)}</h2><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></section>"
    )


def _select(name: str, label: str, options: str = '<option value="">all</option>') -> str:
    return f'<label>{label}<select name="{name}">{options}</select></label>'


def _resource(name: str) -> str:
    return (files("calomel.report") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


_ORDERS: Final = {
    "time": "time",
    "confidence": "surest first",
    "unsure": "least sure first",
    "saved": "most saved first",
    "latency": "slowest first",
}
_FILTERS: Final = (
    '<h2>Suggestions</h2><form class="filters" autocomplete="off">'
    '<label>words in path or text<input name="words" type="search"></label>'
    + _select("outcome", "outcome")
    + _select("status", "shown, or why not")
    + _select("source", "source")
    + _select("kind", "kind")
    + _select("log", "log")
    + '<label>confidence from<input name="least" type="number" min="0" max="1" step="0.05" value="0"></label>'
    + _select("order", "order", "".join(f'<option value="{key}">{words}</option>' for key, words in _ORDERS.items()))
    + '<button type="button" name="earlier">earlier</button><button type="button" name="later">later</button></form>'
)
