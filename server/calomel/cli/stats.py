"""`calomel stats`: what became of suggestions."""

from __future__ import annotations

import json as encoder
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calomel.cli.output import InputError, check_folders, console, plural, say, visible
from calomel.storage import write_whole

if TYPE_CHECKING:
    from calomel.report.result import Table, Value
    from calomel.suggest.outcome_history import Figures, Story

_SECONDS_PER_DAY = 86_400
# The table shows the last days; the JSON has all.
_DAYS = 14


def stats(
    log: Annotated[Path | None, typer.Option(help="The outcome log. Default: yours.")] = None,
    since: Annotated[float | None, typer.Option(min=0, metavar="DAYS", help="Number of days to include.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write every figure as JSON to this file.")] = None,
    details: Annotated[bool, typer.Option("--details", help="Print every figure.")] = False,
) -> None:
    """Show how many suggestions you saw and accepted, and what they saved."""
    from calomel.suggest.outcome_history import stories
    from calomel.suggest.outcome_log import OutcomeRecord, each_record, outcome_log_path

    check_folders(json)
    path = log or outcome_log_path()
    if log is not None and not log.is_file():
        raise InputError(f"{log} does not exist or is not a file", "leave --log out to read your own outcome log")
    begin = None if since is None else time.time() - since * _SECONDS_PER_DAY
    bad = 0

    def wanted() -> Iterator[OutcomeRecord]:
        nonlocal bad
        for each in each_record(path):
            if each is None:
                bad += 1
            elif begin is None or each.time >= begin:
                yield each

    items = stories(wanted())
    sources = [] if log is not None or since is not None else _sources()
    whole = {"log": str(path), "since_days": since, "bad_lines": bad, **_document(items), "sources": sources}
    if json is not None:
        write_whole(json, encoder.dumps(whole, indent=1, allow_nan=False) + "\n")
    if bad:
        console(stderr=True).print(f"{bad:,} damaged lines do not count.")
    if not items and not sources:
        console(wrap=True).print(_nothing(path, since, bad))
        return
    if items:
        console(wrap=True).print(_sentence(whole["total"], since) + "\n")
    _print(whole if details else None)


def _print(whole: Mapping[str, Any] | None) -> None:
    """Every figure, or how to get them."""
    if whole is None:
        say("--details prints every figure.")
        return
    out = console(wrap=True)
    for table in _tables(whole):
        out.print(table.to_rich())
        out.print()


def _sentence(total: Mapping[str, Any], since: float | None) -> str:
    """What a person saw, accepted and saved."""
    when = "So far" if since is None else f"In the last {since:g} {'day' if since == 1 else 'days'}"
    share = f" ({total['acceptance_rate']:.0%})" if total["shown"] else ""
    return (
        f"{when} you saw {plural(total['shown'], 'suggestion')} and accepted {total['taken']:,}{share}, which saved "
        f"{plural(total['saved'], 'character')}. Calomel hid {total['withheld']:,} more, of which you then typed "
        f"{total['withheld_typed']:,} by hand."
    )


def _sources() -> list[dict[str, Value]]:
    """What the records have of each model and rule."""
    from calomel.selectivity.calibrator import THRESHOLDS
    from calomel.selectivity.record import FLOORS, Records
    from calomel.suggest.judging import records_path

    return [
        {
            "source": name,
            "kind": kind,
            "outcomes": round(record.shown),
            "accepted": round(record.accepted),
            **{level: record.threshold(level, usual) for level, usual in THRESHOLDS.items()},
            # Where text with known probabilities ends.
            **{f"{level}_floor": record.threshold(level, least) for level, least in FLOORS.items() if kind == "fill"},
        }
        for name, kind, record in Records(records_path()).rows()
    ]


def _nothing(path: Path, since: float | None, bad: int) -> str:
    if since is not None:
        return f"No entries in the last {since:g} {'day' if since == 1 else 'days'}."
    if bad:
        return f"{path} has no readable line."
    return (
        f"No entries in {path} yet. Editors that use `calomel lsp` record outcomes of "
        "suggestions there, unless `log.outcomes` is off."
    )


def _document(items: Sequence[Story]) -> dict[str, Any]:
    """Every figure, for JSON and for the tables."""
    from calomel.suggest.outcome_history import day_of, grouped, total

    groups: dict[str, Callable[[Story], str]] = {
        "days": day_of,
        "languages": lambda each: each.language,
        "makers": lambda each: each.maker,
        "kinds": lambda each: each.kind,
    }
    held_back = grouped((each for each in items if not each.shown), lambda each: each.reason)
    return {
        "total": _figures(total(items)),
        **{group: {name: _figures(each) for name, each in grouped(items, of).items()} for group, of in groups.items()},
        "withheld": {
            reason: _with_shares({"times": each.withheld}, typed=(each.withheld_typed, each.withheld))
            for reason, each in sorted(held_back.items(), key=lambda item: -item[1].withheld)
        },
    }


def _figures(figures: Figures) -> dict[str, Value]:
    return _with_shares(
        {"shown": figures.shown, "taken": figures.taken, **asdict(figures)},
        acceptance_rate=(figures.taken, figures.shown),
        withheld_typed_rate=(figures.withheld_typed, figures.withheld),
    )


def _with_shares(flat: dict[str, Value], **shares: tuple[int, int]) -> dict[str, Value]:
    """`flat` plus each share, a part of a whole, with the bounds of its 95 % interval."""
    from calomel.report.result import put_interval, wilson

    for name, (part, whole) in shares.items():
        put_interval(flat, name, wilson(part, whole))
    return flat


_FATES = {
    "accepted": "accepted",
    "partly": "accepted in part",
    "rejected": "dismissed",
    "ignored": "ignored",
    "typed": "typed by hand",
    "superseded": "replaced by a newer one",
    "open": "left open",
}
_GROUPS = {"language": "languages", "source": "makers", "kind": "kinds", "day": "days"}
_COLUMNS = {
    "shown": "shown",
    "taken": "accepted",
    "rejected": "dismissed",
    "typed": "typed",
    "acceptance_rate": "accepted %",
    "withheld": "hidden",
    "withheld_typed": "then typed",
    "saved": "saved",
}


def _tables(whole: Mapping[str, Any]) -> Iterator[Table]:
    """All figures; text from the log is untrusted."""
    from calomel.report.result import Table

    total = whole["total"]
    rows = [("shown", f"{total['shown']:,}", "")]
    for name, words in _FATES.items():
        share = _with_shares({}, share=(total[name], total["shown"]))
        rows.append((f"  {words}", f"{total[name]:,}", _cell(share, "share")))
    rows += [
        ("hidden", f"{total['withheld']:,}", ""),
        ("  then typed by hand", f"{total['withheld_typed']:,}", _cell(total, "withheld_typed_rate")),
        ("characters saved", f"{total['saved']:,}", ""),
    ]
    yield Table("All", ("outcomes of suggestions", "", "% [95 %]"), rows)
    for title, group in _GROUPS.items():
        named = list(whole[group].items())[-_DAYS if title == "day" else 0 :]
        groups = [(visible(name), *(_cell(each, key) for key in _COLUMNS)) for name, each in named]
        yield Table(f"By {title}, shares in % [95 %]", (title, *_COLUMNS.values()), groups)
    reasons = [(visible(name), _cell(each, "times"), _cell(each, "typed")) for name, each in whole["withheld"].items()]
    if whole["sources"]:
        levels = ("quiet", "balanced", "eager")
        records = [
            (
                visible(str(each["source"])),
                str(each["kind"]),
                *(f"{each[name]:,}" for name in ("outcomes", "accepted")),
                *(f"{each[level]:.2f}" for level in levels),
                f"{each['balanced_floor']:.2f}" if "balanced_floor" in each else "-",
            )
            for each in whole["sources"]
        ]
        columns = ("source", "kind", "outcomes", "accepted", *levels, "text ends below")
        yield Table("Records the filter learns from, with the probability each level requires", columns, records)
    if reasons:
        yield Table("Why suggestions were hidden", ("reason", "times", "then typed, % [95 %]"), reasons)


def _cell(flat: Mapping[str, Any], name: str) -> str:
    """A count, or a share in percent with its bounds; a dash if nothing was observed."""
    if f"{name}_low" not in flat:
        return f"{flat[name]:,}"
    if flat[name] is None:
        return "-"
    value, low, high = (f"{100 * flat[name + end]:.0f}" for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"
