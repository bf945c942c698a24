"""The page: one file, no source outside of it, and a policy that allows its own style and script and nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from calomel.replay.opportunity import LogResult, Opportunity
from calomel.replay.summary import counts_line, listings
from calomel.storage import write_whole

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
            _figures(summary),
            _problems(results),
            _FILTERS,
            '<p class="faint" id="count"></p>',
            '<section id="suggestions"></section>',
            "<noscript><p>The list needs JavaScript; this page loads nothing from elsewhere.</p></noscript>",
            f'<script type="application/json" id="suggestions-data">{_as_data_block(suggestions(results))}</script>',
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def write_report(path: Path, results: Sequence[LogResult], summary: Mapping[str, Any], title: str = "Replay") -> None:
    """Write the page; folders on the way are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, render_report(results, summary, title))


def _about(results: Sequence[LogResult], summary: Mapping[str, Any]) -> str:
    names = ", ".join(result.log for result in results[:5]) + (" …" if len(results) > 5 else "")  # noqa: PLR2004
    logs = "1 log" if len(results) == 1 else f"{len(results):,} logs"
    return f"{logs}: {names}. {summary['active_minutes']:.0f} minutes of typing. {counts_line(summary)}."


def _figures(summary: Mapping[str, Any]) -> str:
    parts = [_table(each.title, each.columns, each.rows, each.caption or "") for each in listings(summary)]
    bins = [
        (
            f"{each['low']:.1f} to {each['high']:.1f}",
            f"{each['size']:,}",
            f"{each['confidence']:.2f}",
            f"{each['taken']:.1%}",
        )
        for each in summary["reliability"]
    ]
    if bins:
        columns = ("confidence", "suggestions", "mean confidence", "accepted")
        parts.append(_table("Reliability of the confidence", columns, bins))
    return f'<div class="columns">{"".join(parts)}</div>'


def _problems(results: Sequence[LogResult]) -> str:
    rows = [(result.log, str(problem.entry), problem.message) for result in results for problem in result.problems]
    rows += [(result.log, "-", result.error) for result in results if result.error]
    if not rows:
        return ""
    more = [("…", "", f"and {len(rows) - _MOST_PROBLEMS:,} more")] if len(rows) > _MOST_PROBLEMS else []
    return _table("Problems of the logs", ("log", "entry", "problem"), rows[:_MOST_PROBLEMS] + more)


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    top = "".join(f"<th>{escape(each)}</th>" for each in head)
    body = "".join(
        "<tr>" + "".join(f'<td class="number">{escape(each)}</td>' for each in row) + "</tr>" for row in rows
    )
    below = f'<p class="faint">{escape(caption)}</p>' if caption else ""
    return (
        f"<section><h2>{escape(title)}</h2><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{below}"
        "</section>"
    )


def suggestions(results: Sequence[LogResult]) -> list[dict[str, Any]]:
    """Every suggestion as the page's script reads it, those that were held back, too.

    Ours, then the recorded assistants', log by log in the order of time.
    """
    return [
        {key: value for key, value in _fields(item, recorded=recorded) if value is not None}
        for result in results
        for recorded, items in ((False, result.opportunities), (True, result.recorded))
        for item in items
        if item.candidate is not None
    ]


def _as_data_block(value: object) -> str:
    """JSON that cannot end the element it stands in, whatever the texts hold."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _fields(item: Opportunity, *, recorded: bool) -> Iterator[tuple[str, Any]]:
    found = item.candidate
    if found is None:
        return
    yield "log", item.log
    yield "entry", item.entry
    yield "time", round(item.time, 3)
    yield "path", item.path
    yield "kind", item.kind
    yield "shown", item.shown
    yield "reason", item.silence
    yield "latency", round(item.latency_ms, 1)
    yield "source", found.source
    yield "recorded", recorded or None
    yield "real", item.real_outcome or None
    yield "outcome", found.outcome
    yield "confidence", round(found.confidence, 4) if math.isfinite(found.confidence) else None
    yield "saved", found.saved_characters
    yield "kept", found.kept
    yield "visible", round(found.visible_seconds, 2)
    yield "before", found.before
    yield "after", found.after
    yield "expected", found.expected
    numbers = {name: round(value, 4) for name, value in sorted(found.signals.items()) if math.isfinite(value)}
    yield "signals", numbers or None


def _select(name: str, label: str, options: str = '<option value="">all</option>') -> str:
    return f'<label>{label}<select name="{name}">{options}</select></label>'


def _resource(name: str) -> str:
    return (files("calomel.replay") / name).read_text(encoding="utf-8")


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
