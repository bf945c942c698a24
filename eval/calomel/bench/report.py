"""A bench's result: flat keys for machines, tables for people, and what it was measured with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calomel.bench.machine import Provenance
from calomel.bench.stats import Interval

Value = float | int | str | bool | None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of ready-made cells under a title."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_markdown(self) -> str:
        """A GitHub-flavoured table; the first column is text, the others are numbers."""
        lines = [
            f"### {self.title}",
            "",
            "| " + " | ".join(self.columns) + " |",
            "|---|" + "---:|" * (len(self.columns) - 1),
            *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in self.rows),
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Report:
    """One run of one bench.

    Attributes:
        bench: its name.
        flat: figures by name.
        tables: the same for people.
        notes: sentences: definitions, what was skipped and why.
        provenance: what it was measured with.
        details: what is written beside the figures, such as a row for each case.
    """

    bench: str
    flat: Mapping[str, Value]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    provenance: Provenance
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """The flat keys, with the provenance among them, and the details."""
        made = self.provenance
        origin: dict[str, Value] = {
            "bench": self.bench,
            "command": made.command,
            "commit": made.commit,
            "dirty": made.dirty,
            "date": made.date,
            "machine": str(made.machine),
            "cpu": made.machine.cpu,
            "cores": made.machine.cores,
        }
        return json.dumps({**origin, **self.flat, **self.details}, indent=2) + "\n"

    def to_markdown(self) -> str:
        """The page for docs/results/."""
        made = self.provenance
        dirty = " with uncommitted changes" if made.dirty else ""
        loaded = ["", "**Another load was on the machine: the times are not representative.**"]
        return "\n".join(
            [
                f"# {self.bench}",
                "",
                f"    {made.command}",
                "",
                f"Commit `{made.commit}`{dirty}, {made.date}, on {made.machine}.",
                *(loaded if self.flat.get("loaded") else []),
                *(part for table in self.tables for part in ("", table.to_markdown())),
                "",
                *(f"* {note}" for note in self.notes),
                "",
            ]
        )

    def write(self, *, json_path: Path | None, results: Path | None) -> None:
        """Write the flat keys to `json_path` and the page with its keys into the folder `results`, where given."""
        if json_path is not None:
            json_path.parent.mkdir(parents=True, exist_ok=True)
            json_path.write_text(self.to_json(), encoding="utf-8")
        if results is not None:
            results.mkdir(parents=True, exist_ok=True)
            stem = self.bench.replace(" ", "-")
            (results / f"{stem}.md").write_text(self.to_markdown(), encoding="utf-8")
            (results / f"{stem}.json").write_text(self.to_json(), encoding="utf-8")


def put_interval(flat: dict[str, Value], key: str, interval: Interval | None) -> None:
    """Set `key`, `key_low`, `key_high` and `key_n`; nothing observed leaves the value null and n at 0."""
    flat[key] = None if interval is None else interval.value
    flat[f"{key}_low"] = None if interval is None else interval.low
    flat[f"{key}_high"] = None if interval is None else interval.high
    flat[f"{key}_n"] = 0 if interval is None else interval.n


def figures_table(title: str, flat: Mapping[str, Value]) -> Table:
    """The keys and their numbers, one a row; what is true or false is no figure."""
    rows = [
        (key, number_cell(float(value) if isinstance(value, int | float) else None, 3))
        for key, value in flat.items()
        if not isinstance(value, bool)
    ]
    return Table(title, ("figure", "value"), tuple(rows))


def percent_cell(interval: Interval | None) -> str:
    """A share in percent with its bounds."""
    if interval is None:
        return "-"
    return f"{interval.value:.1%} [{interval.low:.1%}, {interval.high:.1%}]"


def points_cell(interval: Interval | None) -> str:
    """A difference of shares in points with its bounds, each with its sign."""
    if interval is None:
        return "-"
    return f"{100 * interval.value:+.1f} [{100 * interval.low:+.1f}, {100 * interval.high:+.1f}]"


def number_cell(value: float | None, digits: int = 2) -> str:
    """A number, or a dash where nothing was measured."""
    return "-" if value is None else f"{value:.{digits}f}"
