"""`calomel stats`: what became of suggestions, and what another threshold would have done."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calomel.cli.errors import InputError
from calomel.storage import write_whole

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from calomel.suggest.outcome_history import Figures, Story

_SECONDS_PER_DAY = 86_400
# The table has the last days; the JSON has all.
_DAYS = 14


def stats(
    log: Annotated[Path | None, typer.Option(help="The outcome log. Default: yours.")] = None,
    since: Annotated[float | None, typer.Option(min=0, metavar="DAYS", help="Only the last days.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write every figure as JSON to this file.")] = None,
) -> None:
    """Print what became of suggestions, and what another threshold would have done, from the outcome log alone."""
    from calomel.suggest.outcome_log import outcome_log_path

    if json is not None and not json.resolve().parent.is_dir():
        raise InputError(f"{json} cannot be written: its folder does not exist")
    path = log or outcome_log_path()
    if log is not None and not log.exists():
        raise InputError(f"{log} does not exist")
    if path.is_dir():
        raise InputError(f"{path} is a folder; the log is a file")
    found, bad = _read(path, None if since is None else time.time() - since * _SECONDS_PER_DAY)
    whole = {"log": str(path), "since_days": since, "bad_lines": bad, **_document(found)}
    if json is not None:
        import json as encoder

        write_whole(json, encoder.dumps(whole, indent=1, allow_nan=False) + "\n")
    from rich.console import Console

    out = Console(highlight=False)
    if bad:
        lines = "1 line is" if bad == 1 else f"{bad:,} lines are"
        Console(stderr=True, highlight=False).print(f"{lines} damaged and left out.", markup=False)
    if found:
        _show(out, whole)
    else:
        out.print(_nothing(path, since, bad), markup=False)


def _read(path: Path, begin: float | None) -> tuple[list[Story], int]:
    """The suggestions since `begin`, and how many lines of the log are damaged."""
    from collections.abc import Iterator

    from calomel.suggest.outcome_history import each_outcome, stories
    from calomel.suggest.outcome_log import OutcomeRecord

    bad = 0

    def good() -> Iterator[OutcomeRecord]:
        nonlocal bad
        for record in each_outcome(path, in_brief=True):
            if record is None:
                bad += 1
            elif begin is None or record.time >= begin:
                yield record

    try:
        return stories(good()), bad
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _nothing(path: Path, since: float | None, bad: int) -> str:
    if since is not None:
        return f"Nothing was logged in the last {since:g} days."
    if bad:
        return f"{path} holds no line that can be read."
    return (
        f"Nothing is logged in {path} yet. Editors that use `calomel lsp` write there what became of each suggestion, "
        "unless `log.outcomes` is off."
    )


def _document(found: Sequence[Story]) -> dict[str, Any]:
    """Every figure, for JSON and for the tables."""
    from calomel.suggest.outcome_history import day_of, grouped, total, what_if

    held_back = grouped((each for each in found if not each.shown), lambda each: each.reason)
    names: dict[str, Callable[[Story], str]] = {
        "days": day_of,
        "languages": lambda each: each.language,
        "makers": lambda each: each.maker,
        "kinds": lambda each: each.kind,
    }
    return {
        "total": _fields(total(found)),
        **{group: {name: _fields(each) for name, each in grouped(found, of).items()} for group, of in names.items()},
        "withheld": {
            reason: {"times": each.withheld, **_share("typed", each.withheld_typed, each.withheld)}
            for reason, each in sorted(held_back.items(), key=lambda item: -item[1].withheld)
        },
        "thresholds": [
            {
                **asdict(each),
                **_share("shown_share", each.shown, each.of),
                **_share("precision", each.wanted, each.shown),
                **_share("loss", each.missed, each.wanted + each.missed),
            }
            for each in what_if(found, _named())
        ],
    }


def _named() -> Mapping[str, float]:
    """What the names of thresholds come to with the shipped model, or with the user's own fit for it."""
    from calomel.suggest.judging import calibrator_for
    from calomel.suggest.launch import describe
    from calomel.suggest.signals import THRESHOLDS

    return {**THRESHOLDS, **calibrator_for(describe(None)).thresholds}


def _fields(figures: Figures) -> dict[str, Any]:
    return {
        "shown": figures.shown,
        **asdict(figures),
        **_share("acceptance_rate", figures.taken, figures.shown),
        **_share("withheld_typed_rate", figures.withheld_typed, figures.withheld),
    }


def _share(name: str, part: int, whole: int) -> dict[str, float | None]:
    """`part` of `whole` with the bounds of Wilson's 95 % interval; None of nothing."""
    from calomel.report.stats import wilson

    found = wilson(part, whole)
    ends = ("", "_low", "_high")
    values = (None, None, None) if found is None else (found.value, found.low, found.high)
    return dict(zip((name + end for end in ends), values, strict=True))


def _show(out: Console, whole: Mapping[str, Any]) -> None:
    out.print(_overview(whole["total"]))
    for title, group in (("language", "languages"), ("maker", "makers"), ("kind", "kinds"), ("day", "days")):
        rows = dict(list(whole[group].items())[-_DAYS:]) if group == "days" else whole[group]
        out.print()
        out.print(_groups(title, rows))
    if whole["withheld"]:
        out.print()
        out.print(_reasons(whole["withheld"]))
    if any(each["of"] for each in whole["thresholds"]):
        out.print()
        out.print(_thresholds(whole["thresholds"]))


def _table(*columns: str, title: str, caption: str | None = None) -> Table:
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", title_style="bold", caption=caption, caption_justify="left", box=None,
        pad_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    table.add_column(columns[0], no_wrap=True)
    for column in columns[1:]:
        table.add_column(column, justify="right", no_wrap="%" in column)
    return table


def _overview(total: Mapping[str, Any]) -> Table:
    table = _table("what became of suggestions", "", "in % [95 %]", title="All")
    shown = total["shown"]
    table.add_row("shown", f"{shown:,}", "")
    for words, name in (
        ("  accepted", "accepted"),
        ("  accepted in part", "partly"),
        ("  rejected", "rejected"),
        ("  ignored", "ignored"),
        ("  typed by hand", "typed"),
        ("  replaced by a newer one", "superseded"),
        ("  left open", "open"),
    ):
        table.add_row(words, f"{total[name]:,}", _percent(_share("share", total[name], shown), "share"))
    table.add_row("held back", f"{total['withheld']:,}", "")
    table.add_row("  then typed by hand", f"{total['withheld_typed']:,}", _percent(total, "withheld_typed_rate"))
    table.add_row("characters saved", f"{total['saved']:,}", "")
    return table


def _groups(title: str, rows: Mapping[str, Mapping[str, Any]]) -> Table:
    columns = ("shown", "taken", "rejected", "typed", "rate, % [95 %]", "held back", "then typed", "saved")
    table = _table(title, *columns, title=f"By {title}")
    for name, each in rows.items():
        taken = each["accepted"] + each["partly"]
        table.add_row(
            _name(name),
            *(f"{count:,}" for count in (each["shown"], taken, each["rejected"], each["typed"])),
            _percent(each, "acceptance_rate", digits=0),
            *(f"{each[key]:,}" for key in ("withheld", "withheld_typed", "saved")),
        )
    return table


def _reasons(rows: Mapping[str, Mapping[str, Any]]) -> Table:
    table = _table("reason", "times", "then typed, % [95 %]", title="Why suggestions were held back")
    for reason, each in rows.items():
        table.add_row(_name(reason), f"{each['times']:,}", _percent(each, "typed"))
    return table


def _thresholds(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = _table(
        "threshold",
        "shows",
        "of all",
        "wanted",
        "precision, % [95 %]",
        "loses, % [95 %]",
        title="What another threshold would have done",
        caption=(
            "Wanted: accepted, or written by hand. What is shown is accepted more often than it is written by hand, "
            "so what was held back is worth rather more than this says."
        ),
    )
    for each in rows:
        table.add_row(
            f"{each['threshold']:g} {each['name']}".strip(),
            f"{each['shown']:,}",
            f"{each['shown_share']:.0%}",
            f"{each['wanted']:,}",
            _percent(each, "precision"),
            _percent(each, "loss"),
        )
    return table


def _name(name: str) -> str:
    """A name from the log, which could be anybody's file, as plain text of a table."""
    from rich.markup import escape

    from calomel.cli.fill import visible

    return escape(visible(name))


def _percent(values: Mapping[str, Any], name: str, digits: int = 1) -> str:
    if values[name] is None:
        return "-"
    value, low, high = (f"{100 * values[name + end]:.{digits}f}" for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"
