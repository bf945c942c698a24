"""The report page: one self-contained file, with a policy that allows only its own style and script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, StrictUndefined

from calomel.replay.opportunity import LogResult
from calomel.replay.summary import counts_line, listings
from calomel.report.result import CONVERTER, Flat, Table
from calomel.storage import write_whole

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
