"""`calomel replay`: play logs of real editing, and judge the suggestions."""

from __future__ import annotations

import json as encoder
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calomel.cli.chosen import AnyDevice, AnyModel, AnyUpstream, UpstreamModel, chosen
from calomel.cli.output import (
    Aggressiveness,
    CommandError,
    InputError,
    Resume,
    Seed,
    Threads,
    check_folders,
    console,
    made_of,
    plural,
    say,
    word_or_number,
)
from calomel.storage import MOST_TABLE_BYTES, read_whole, write_whole

if TYPE_CHECKING:
    from calomel.replay.events import ReplayLog
    from calomel.replay.opportunity import LogResult

# If a log has more problems than this, only their number is printed.
_PROBLEMS = 10
_LONGEST_LATENCY = 60_000.0
# Of a run that is read by a person, who waits for it.
_MINUTES = 1.5


def _latency(text: str) -> str | float:
    latency = word_or_number("--latency", ("measured",), _LONGEST_LATENCY, text)
    return latency if isinstance(latency, str) else latency / 1e3


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(text.split(",")))
    for name in kinds:
        if name not in {"fill", "edit"}:
            raise InputError(f"--kinds {text!r}: {name!r} is not fill or edit")
    return kinds


def replay(
    logs: Annotated[list[Path] | None, typer.Argument(metavar="LOG...", help="Logs in any known format.")] = None,
    git: Annotated[Path | None, typer.Option(help="Replay the history of this repository, one log per commit.")] = None,
    commits: Annotated[int, typer.Option(min=1, help="Number of newest commits.")] = 50,
    latency: Annotated[
        Any,
        typer.Option(metavar="measured|MS", parser=_latency, help="Answer time: `measured`, or milliseconds."),
    ] = "measured",
    model: AnyModel = None,
    upstream: AnyUpstream = None,
    upstream_model: UpstreamModel = None,
    device: AnyDevice = None,
    threads: Threads = None,
    jobs: Annotated[int, typer.Option(min=1, help="Parallel processes, each with its own engine.")] = 1,
    kinds: Annotated[
        Any, typer.Option(metavar="fill,edit", parser=_kinds, help="Kinds to replay. Default: all the model supports.")
    ] = None,
    aggressiveness: Aggressiveness = "balanced",
    limit_minutes: Annotated[float | None, typer.Option(min=0, help="Time limit per log, in minutes.")] = None,
    seed: Seed = 0,
    resume: Resume = True,
    json: Annotated[Path | None, typer.Option(help="Write every figure and opportunity as JSON to this file.")] = None,
    open_files: Annotated[
        int | None,
        typer.Option(min=0, help="Replay with the package's other files on disk and N of them open."),
    ] = None,
    only: Annotated[int | None, typer.Option(min=1, help="Number of logs, drawn with --seed.")] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            help="Show nothing; write every candidate with its outcome to this file, for `calomel calibrate`."
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")] = None,
    recorded_assistant: Annotated[
        bool,
        typer.Option("--recorded-assistant", help="Filter the recorded assistant's suggestions instead."),
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Stop after so many. Default: 1.5; none with --details, --jobs, --json, --html or --samples.",
        ),
    ] = None,
    details: Annotated[bool, typer.Option("--details", help="Print every figure.")] = False,
    compare: Annotated[
        tuple[Path, Path] | None, typer.Option(metavar="A.json B.json", help="Compare two JSON results instead.")
    ] = None,
) -> None:
    """Replay recorded edits and count the suggestions you would have accepted."""
    given = locals()
    if compare is not None:
        _compare(*compare, seed=seed)
        return
    check_folders(json, html, samples)
    read = _some(_read(logs or [], git, commits), only, seed)
    if recorded_assistant:
        _assistant(read, aggressiveness, json)
        return
    from calomel.replay.opportunity import ReplayOptions
    from calomel.replay.runs import replay_logs
    from calomel.replay.summary import document, sentence, write_report
    from calomel.report.running import Progress

    choice = chosen(given)
    options = made_of(ReplayOptions, {**given, **choice.options, "samples": samples is not None})
    statistics = details or json or html or samples or jobs > 1
    until = _end(minutes if minutes is not None or statistics else _MINUTES)
    done = [0] * len(read)
    with Progress() as progress:
        progress.phase("replay, events", sum(len(log.events) for log in read))

        def report(log: int, so_far: int, total: int) -> None:
            done[log] = min(so_far, total)
            progress.step(sum(done))

        results = replay_logs(
            read, options, jobs=jobs, report=report, resume=resume, over=lambda: time.monotonic() > until
        )
    whole = document(results, seed, {"options": asdict(options) | choice.told})
    say(sentence(whole))
    events = sum(len(log.events) for log in read)
    if time.monotonic() > until and sum(done) < events:
        say(f"That was {min(sum(done) / events, 0.99):.0%} of it: --minutes allows more time.")
    _print(whole if details else None)
    if samples is not None:
        write_whole(samples, "".join(each.to_line() for result in results for each in result.samples))
    if json is not None:
        write_whole(json, encoder.dumps(whole, allow_nan=False) + "\n")
    if html is not None:
        write_report(html, results, whole, "Calomel replay")
    _check(results)


def _end(minutes: float | None) -> float:
    """When to stop, by the monotonic clock."""
    return math.inf if minutes is None else time.monotonic() + 60 * minutes


def _print(whole: dict[str, Any] | None) -> None:
    """Every figure, or how to get them."""
    from calomel.replay.summary import listings

    if whole is None:
        say("--details prints every figure.")
        return
    for listing in listings(whole):
        console(wrap=True).print(listing.to_rich())


def _check(results: Sequence[LogResult]) -> None:
    """Raise CommandError unless all logs played to the end and as they were recorded."""
    stopped = [f"{result.log}: {result.error}" for result in results if result.error]
    if stopped:
        raise CommandError(f"{plural(len(stopped), 'log')} did not play to the end; {stopped[0]}")
    if not all(result.text_right for result in results):
        raise CommandError("the replayed text differs from the log, so its figures mean nothing")


def _assistant(logs: Sequence[ReplayLog], aggressiveness: str | float, json: Path | None) -> None:
    import asyncio

    from calomel.replay.recorded import assistant_report, filtered_offers

    rows = [row for log in logs for row in asyncio.run(filtered_offers(log, aggressiveness))]  # type: ignore[arg-type]
    if not rows:
        raise InputError("these logs contain no suggestions of a recorded assistant", "a VS Code recording")
    report = assistant_report(rows, aggressiveness)  # type: ignore[arg-type]
    report.write(json_path=json, results=None)
    say(report.to_markdown())


def _read(paths: Sequence[Path], git: Path | None, commits: int) -> list[ReplayLog]:
    """The logs; the problems in each go to stderr. Raises InputError, LogError."""
    if not paths and git is None:
        raise InputError("nothing to replay", "name a LOG, or a repository with --git")
    from calomel.replay.logs import read_logs

    logs = [log for path in paths for log in read_logs(path)]
    if git is not None:
        logs += _commits(git, commits)
    for log in logs:
        for problem in log.problems[:_PROBLEMS]:
            say(f"{log.name}, entry {problem.entry}: {problem.message}", err=True)
        more = len(log.problems) - _PROBLEMS
        if more > 0:
            say(f"{log.name}: {plural(more, 'more problem')}; see --json", err=True)
    if not logs:
        raise InputError(f"nothing to replay in the last {plural(commits, 'commit')} of {git}", "a higher --commits")
    return logs


def _some(logs: list[ReplayLog], count: int | None, seed: int) -> list[ReplayLog]:
    """A random sample of `count` logs, in order."""
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
        say(f"{git}: without {plural(count, 'commit')}: {reason}", err=True)


def _compare(first: Path, second: Path, *, seed: int) -> None:
    from calomel.replay.summary import compare

    runs: list[Any] = []
    for path in (first, second):
        try:
            runs.append(encoder.loads(read_whole(path, MOST_TABLE_BYTES)))
        except ValueError as error:
            raise InputError(f"{path} is not valid JSON: {error}") from error
    console(wrap=True).print(compare(runs[0], runs[1], seed).to_rich())
