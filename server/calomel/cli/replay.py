"""`calomel replay`: what a person would have accepted, from logs of real editing."""

from __future__ import annotations

import json as encoder
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calomel.cli.errors import CommandError, InputError
from calomel.cli.options import Aggressiveness, Device, Model, Resume, Seed, Threads, made_of, word_or_number
from calomel.cli.output import check_folders, console
from calomel.storage import write_whole

if TYPE_CHECKING:
    from calomel.replay.events import ReplayLog
    from calomel.replay.runs import Report

# More than that in one log is named by their number.
_PROBLEMS = 10
_LONGEST_LATENCY = 60_000.0


def _latency(text: str) -> str | float:
    found = word_or_number("--latency", ("measured",), _LONGEST_LATENCY, text)
    return found if isinstance(found, str) else found / 1e3


def _kinds(text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(text.split(",")))
    for name in found:
        if name not in {"fill", "edit"}:
            raise InputError(f"--kinds {text!r}: {name!r} is neither fill nor edit")
    return found


def replay(
    logs: Annotated[list[Path] | None, typer.Argument(metavar="LOG...", help="Logs of any known format.")] = None,
    git: Annotated[Path | None, typer.Option(help="Replay the history of this repository, a log for a commit.")] = None,
    commits: Annotated[int, typer.Option(min=1, help="How many of the newest commits.")] = 50,
    latency: Annotated[
        Any,
        typer.Option(metavar="measured|MS", parser=_latency, help="What answers take: measured, or in milliseconds."),
    ] = "measured",
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    jobs: Annotated[int, typer.Option(min=1, help="Logs at once, each in a process with its own engine.")] = 1,
    ray: Annotated[bool, typer.Option("--ray", help="On a Ray cluster (needs the extra: cluster).")] = False,
    kinds: Annotated[
        Any, typer.Option(metavar="fill,edit", parser=_kinds, help="Default: what the model was trained for.")
    ] = None,
    aggressiveness: Aggressiveness = "balanced",
    limit_minutes: Annotated[float | None, typer.Option(min=0, help="Only so much of each log's time.")] = None,
    seed: Seed = 0,
    resume: Resume = True,
    json: Annotated[Path | None, typer.Option(help="Write every figure and opportunity as JSON to this file.")] = None,
    only: Annotated[int | None, typer.Option(min=1, help="So many of the logs, drawn by --seed.")] = None,
    samples: Annotated[
        Path | None,
        typer.Option(help="Show nothing, and write every candidate with its outcome to this file: for calibrate."),
    ] = None,
    prompts: Annotated[bool, typer.Option(help="With --samples: keep texts and prompts, too: for align.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a report, one file that needs nothing else.")] = None,
    compare: Annotated[
        tuple[Path, Path] | None, typer.Option(metavar="A.json B.json", help="Compare two runs instead.")
    ] = None,
) -> None:
    """Replay logs of real editing, and judge each suggestion by what the person wrote."""
    given = locals()
    if compare is not None:
        _compare(*compare, seed=seed)
        return
    check_folders(json, html, samples)
    read = _some(_read(logs or [], git, commits), only, seed)
    from calomel.replay.opportunity import ReplayOptions
    from calomel.replay.page import write_report
    from calomel.replay.runs import replay_logs
    from calomel.replay.summary import document, listings

    options = made_of(ReplayOptions, {**given, "samples": samples is not None})
    with _progress(read) as report:
        results = replay_logs(read, options, jobs=jobs, report=report, resume=resume, ray=ray)
    whole = document(results, seed, {"options": asdict(options) | {"model": None if model is None else str(model)}})
    for listing in listings(whole):
        console(wrap=True).print(listing.to_rich())
    if samples is not None:
        write_whole(samples, "".join(each.to_line() for result in results for each in result.samples))
    if json is not None:
        write_whole(json, encoder.dumps(whole, allow_nan=False) + "\n")
    if html is not None:
        write_report(html, results, whole, "Calomel replay")
    stopped = [f"{result.log}: {result.error}" for result in results if result.error]
    if stopped:
        raise CommandError(f"{len(stopped)} logs were not replayed to their end; {stopped[0]}")
    if not all(result.text_right for result in results):
        raise CommandError("the text of the replay is not the log's: its figures mean nothing")


def _read(paths: Sequence[Path], git: Path | None, commits: int) -> list[ReplayLog]:
    """The logs; what is wrong with each goes to stderr. Raises InputError, LogError."""
    if not paths and git is None:
        raise InputError("name a LOG, or a repository with --git")
    from calomel.replay.logs import read_logs

    found = [log for path in paths for log in read_logs(path)]
    if git is not None:
        found += _commits(git, commits)
    for log in found:
        for problem in log.problems[:_PROBLEMS]:
            typer.echo(f"{log.name}, entry {problem.entry}: {problem.message}", err=True)
        more = len(log.problems) - _PROBLEMS
        if more > 0:
            typer.echo(f"{log.name}: {more} more problems; --json has all", err=True)
    if not found:
        raise InputError(f"none of the last {commits} commits of {git} can be replayed")
    return found


def _some(logs: list[ReplayLog], count: int | None, seed: int) -> list[ReplayLog]:
    """So many, drawn, in their order."""
    if count is None or count >= len(logs):
        return logs
    from random import Random

    drawn = Random(seed).sample(range(len(logs)), count)  # noqa: S311 (a draw that can be repeated)
    return [logs[number] for number in sorted(drawn)]


def _commits(git: Path, commits: int) -> Iterator[ReplayLog]:
    from calomel.replay.git import LeftOut, read_git

    left_out: Counter[str] = Counter()
    for each in read_git(git, commits):
        if isinstance(each, LeftOut):
            left_out[each.reason.partition(":")[0].partition(" (")[0]] += 1
        else:
            yield each
    for reason, count in left_out.most_common():
        typer.echo(f"{git}: {count} commits are left out: {reason}", err=True)


def _compare(first: Path, second: Path, *, seed: int) -> None:
    from calomel.replay.summary import compare

    runs: list[Any] = []
    for path in (first, second):
        try:
            runs.append(encoder.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            raise InputError(f"{path} is no JSON: {error}") from error
    console(wrap=True).print(compare(runs[0], runs[1], seed).to_rich())


@contextmanager
def _progress(logs: Sequence[ReplayLog]) -> Iterator[Report]:
    """A bar over all events of all logs, on stderr."""
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    each = [0] * len(logs)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("replay, events", total=sum(len(log.events) for log in logs))

        def report(log: int, done: int, total: int) -> None:
            each[log] = min(done, total)
            bar.update(task, completed=sum(each))

        yield report
