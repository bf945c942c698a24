"""`calomel replay`: what a person would have accepted, from logs of real editing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calomel.cli.errors import CommandError, InputError, check_device, engine_errors_reported
from calomel.storage import write_whole

if TYPE_CHECKING:
    from calomel.replay.events import ReplayLog
    from calomel.replay.opportunity import Latency, ReplayOptions
    from calomel.replay.runs import Report
    from calomel.suggest.completer import Kind
    from calomel.workspace.settings import Aggressiveness

_KINDS = ("fill", "edit")
# More than that in one log is named by their number.
_PROBLEMS = 10


def replay(
    logs: Annotated[list[Path] | None, typer.Argument(metavar="LOG...", help="Logs of any known format.")] = None,
    git: Annotated[Path | None, typer.Option(help="Replay the history of this repository, a log for a commit.")] = None,
    commits: Annotated[int, typer.Option(min=1, help="How many of the newest commits.")] = 50,
    latency: Annotated[
        str, typer.Option(metavar="measured|MS", help="What answers take: what they do here, or so many milliseconds.")
    ] = "measured",
    model: Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    threads: Annotated[int | None, typer.Option(min=1, help="Processor threads of each engine.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Logs at once, each in a process with its own engine.")] = 1,
    ray: Annotated[bool, typer.Option("--ray", help="On a Ray cluster (needs the extra: cluster).")] = False,
    kinds: Annotated[
        str | None, typer.Option(metavar="fill,edit", help="What to ask for. Default: what the model was trained for.")
    ] = None,
    aggressiveness: Annotated[
        str, typer.Option(metavar="quiet|balanced|eager|P", help="How sure the model must be.")
    ] = "balanced",
    limit_minutes: Annotated[float | None, typer.Option(min=0, help="Only so much of each log's time.")] = None,
    seed: Annotated[int, typer.Option(help="Of whatever is drawn, such as intervals.")] = 0,
    resume: Annotated[bool, typer.Option(help="Go on where an interrupted run stopped.")] = True,
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
    if compare is not None:
        _compare(*compare, seed=seed)
        return
    if not logs and git is None:
        raise InputError("name a LOG, or a repository with --git")
    from calomel.replay.opportunity import ReplayOptions

    options = ReplayOptions(
        model=model,
        device=device,
        threads=threads,
        latency=_latency(latency),
        seed=seed,
        aggressiveness=aggressiveness_of(aggressiveness),
        kinds=_kinds(kinds),
        limit_minutes=limit_minutes,
        samples=samples is not None,
        prompts=prompts,
    )
    for path in (json, html, samples):
        if path is not None and not path.resolve().parent.is_dir():
            raise InputError(f"{path} cannot be written: its folder does not exist")
    read = _some(_read(logs or [], git, commits), only, seed)
    with _errors_reported(device):
        _replay(read, options, jobs=jobs, ray=ray, resume=resume, json=json, html=html, samples=samples)


def _replay(
    logs: Sequence[ReplayLog],
    options: ReplayOptions,
    *,
    jobs: int,
    ray: bool,
    resume: bool,
    json: Path | None,
    html: Path | None,
    samples: Path | None,
) -> None:
    from calomel.replay.runs import replay_logs

    with _progress(logs) as report:
        results = replay_logs(logs, options, jobs=jobs, report=report, resume=resume, ray=ray)
    if samples is not None:
        write_whole(samples, "".join(each.to_line() for result in results for each in result.samples))
    from calomel.replay.summary import document, listings

    whole = document(results, options.seed, {"options": _plain(options)})
    out = _console(stderr=False)
    for listing in listings(whole):
        out.print(listing.to_rich())
    if json is not None:
        import json as encoder

        write_whole(json, encoder.dumps(whole, allow_nan=False) + "\n")
    if html is not None:
        from calomel.replay.page import write_report

        write_report(html, results, whole, "Calomel replay")
    stopped = [f"{result.log}: {result.error}" for result in results if result.error]
    if stopped:
        raise CommandError(f"{len(stopped)} logs were not replayed to their end; {stopped[0]}")
    if not all(result.text_right for result in results):
        raise CommandError("the text of the replay is not the log's: its figures mean nothing")


def _read(paths: Sequence[Path], git: Path | None, commits: int) -> list[ReplayLog]:
    """The logs; what is wrong with each goes to stderr."""
    from calomel.replay.events import LogError
    from calomel.replay.logs import read_logs

    found: list[ReplayLog] = []
    try:
        for path in paths:
            found += read_logs(path)
        if git is not None:
            found += _commits(git, commits)
    except LogError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error
    for log in found:
        _tell_problems(log)
    if not found:
        raise InputError(f"none of the last {commits} commits of {git} can be replayed")
    return found


def _some(logs: list[ReplayLog], count: int | None, seed: int) -> list[ReplayLog]:
    """So many, drawn, in their order."""
    if count is None or count >= len(logs):
        return logs
    from random import Random

    drawn = set(Random(seed).sample(range(len(logs)), count))  # noqa: S311 (a draw that can be repeated)
    return [log for number, log in enumerate(logs) if number in drawn]


def _commits(git: Path, commits: int) -> Iterator[ReplayLog]:
    from collections import Counter

    from calomel.replay.git import LeftOut, read_git

    left_out: Counter[str] = Counter()
    for each in read_git(git, commits):
        if isinstance(each, LeftOut):
            left_out[each.reason.partition(":")[0].partition(" (")[0]] += 1
        else:
            yield each
    for reason, count in left_out.most_common():
        typer.echo(f"{git}: {count} commits are left out: {reason}", err=True)


def _tell_problems(log: ReplayLog) -> None:
    for problem in log.problems[:_PROBLEMS]:
        typer.echo(f"{log.name}, entry {problem.entry}: {problem.message}", err=True)
    more = len(log.problems) - _PROBLEMS
    if more > 0:
        typer.echo(f"{log.name}: {more} more problems; --json has all", err=True)


def _compare(first: Path, second: Path, *, seed: int) -> None:
    import json as encoder

    from calomel.replay.summary import ComparisonError, compare

    runs: list[Any] = []
    for path in (first, second):
        try:
            runs.append(encoder.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise InputError(f"{path} is no JSON: {error}") from error
    try:
        _console(stderr=False).print(compare(runs[0], runs[1], seed).to_rich())
    except ComparisonError as error:
        raise InputError(str(error)) from error


def _latency(text: str) -> Latency:
    if text == "measured":
        return "measured"
    try:
        milliseconds = float(text)
    except ValueError:
        milliseconds = -1.0
    if not 0.0 <= milliseconds <= 60_000.0:  # noqa: PLR2004 (a minute)
        raise InputError(f"--latency {text!r} is neither `measured` nor milliseconds up to 60000")
    return milliseconds / 1e3


def aggressiveness_of(text: str) -> Aggressiveness:
    """What `--aggressiveness` says. Raises InputError."""
    for name in ("quiet", "balanced", "eager"):
        if text == name:
            return name
    try:
        probability = float(text)
    except ValueError:
        probability = -1.0
    if not 0.0 <= probability <= 1.0:
        raise InputError(f"--aggressiveness {text!r} is none of quiet, balanced, eager or a probability")
    return probability


def _kinds(text: str | None) -> tuple[Kind, ...] | None:
    if text is None:
        return None
    found: list[Kind] = []
    for name in dict.fromkeys(text.split(",")):
        if name not in _KINDS:
            raise InputError(f"--kinds {text!r}: {name!r} is neither fill nor edit")
        found.append("fill" if name == "fill" else "edit")
    return tuple(found)


def _plain(options: ReplayOptions) -> dict[str, Any]:
    from dataclasses import asdict

    return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(options).items()}


@contextmanager
def _errors_reported(device: str) -> Iterator[None]:
    check_device(device)
    from calomel.replay.runs import ReplayError

    with engine_errors_reported():
        try:
            yield
        except ReplayError as error:
            raise CommandError(str(error)) from error


@contextmanager
def _progress(logs: Sequence[ReplayLog]) -> Iterator[Report]:
    """A bar over all events of all logs, on stderr."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    each = [0] * len(logs)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=_console(stderr=True), transient=True) as bar:
        task = bar.add_task("replay, events", total=sum(len(log.events) for log in logs))

        def report(log: int, done: int, total: int) -> None:
            each[log] = min(done, total)
            bar.update(task, completed=sum(each))

        yield report


def _console(*, stderr: bool) -> Any:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)
