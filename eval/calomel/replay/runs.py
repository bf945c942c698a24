"""Replays many logs: in this process or in several, continuing an interrupted run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from calomel.infer.completer import Completer
from calomel.replay.events import ReplayLog
from calomel.replay.log_time import StuckError, run
from calomel.replay.opportunity import LogResult, ReplayOptions
from calomel.replay.player import Player
from calomel.report.result import weights_hash
from calomel.report.running import Journal, in_processes
from calomel.weights import nano_path, weights_id

# Often enough for a progress bar.
_EVENTS_PER_REPORT: Final = 50

# Opens the model of one process; a module-level function, so that other processes can import it.
OpenModel = Callable[[ReplayOptions], Completer]
# Number and log.
Task = tuple[int, ReplayLog]


# Gets the progress of each log: its number, its events done, and its events in total.
Report = Callable[[int, int, int], None]


def open_engine(options: ReplayOptions) -> Completer:
    """The model that the options name, in this process or behind another server."""
    from calomel.server.upstream import open_either

    return open_either(options.model, options.device, options.threads, options.upstream)


def replay_logs(
    logs: Sequence[ReplayLog],
    options: ReplayOptions,
    *,
    jobs: int = 1,
    report: Report = lambda *_: None,
    open_model: OpenModel = open_engine,
    folder: Path | None = None,
    resume: bool = True,
    over: Callable[[], bool] = lambda: False,
) -> list[LogResult]:
    """The results of all logs, in their order, however they were computed; of fewer where it is `over` before the end.

    Logs done in an interrupted run with the same logs, options, model and code are not replayed again; a finished run
    leaves no journal behind.

    Args:
        logs: to be replayed.
        options: of all of them.
        jobs: processes; each has its own model.
        report: called with the progress.
        open_model: opens a model.
        folder: of the journal.
        resume: continue an interrupted run.
        over: asked after each event (after each log with several jobs): no more is played then.
    """
    if options.threads is None and jobs > 1:
        # Several engines share the cores; a single one uses torch's default.
        options = replace(options, threads=max(1, (os.cpu_count() or 1) // jobs))
    digests = [_digest(log) for log in logs]
    # Concurrent runs of different logs must not share a journal: the first to end would delete the other's.
    depends_on = {
        "options": asdict(options),
        "model": f"{open_model.__module__}.{open_model.__qualname__}",
        "weights": _weights(options),
        "logs": digests,
    }
    journal = Journal("replay", depends_on, resume=resume, folder=folder)
    known = {at: journal.get(digest, LogResult) for at, digest in enumerate(digests)}
    results = {at: result for at, result in known.items() if result is not None}
    for number in results:
        report(number, len(logs[number].events), len(logs[number].events))
    todo = [(number, log) for number, log in enumerate(logs) if number not in results]
    for number, result in _computed(todo, options, jobs, report, open_model, over):
        results[number] = result
        if over():
            break
        journal.put(digests[number], result)
    journal.path.unlink(missing_ok=True)
    return [results[number] for number in sorted(results)]


def replay_log(
    log: ReplayLog,
    completer: Completer,
    options: ReplayOptions,
    *,
    report: Callable[[int], None] = lambda _: None,
    over: Callable[[], bool] = lambda: False,
) -> LogResult:
    """One log. A model that stops answering ends it early; the result says so in `error`."""
    played = 0

    def note(done: int) -> None:
        nonlocal played
        played = done
        if done % _EVENTS_PER_REPORT == 0:
            report(done)

    async def play() -> LogResult:
        player = Player(log, completer, await completer.info(), options)
        player.over = over
        player.report = note
        try:
            return await player.play()
        except StuckError as error:
            player.result.error = str(error)
            return player.result

    result = run(play())
    report(played)
    return result


def _computed(
    todo: Sequence[Task],
    options: ReplayOptions,
    jobs: int,
    report: Report,
    open_model: OpenModel,
    over: Callable[[], bool],
) -> Iterator[tuple[int, LogResult]]:
    """The results by number, as they arrive."""
    if not todo:
        return
    if jobs == 1 or len(todo) == 1:
        completer = open_model(options)
        try:
            for number, log in todo:
                yield number, replay_log(log, completer, options, report=_told(report, number, log), over=over)
        finally:
            run(completer.aclose())
        return
    logs = dict(todo)
    for number, result in in_processes(_play, todo, min(jobs, len(todo)), _begin, (options, open_model)):
        _told(report, number, logs[number])(len(logs[number].events))
        yield number, result


def _told(report: Report, number: int, log: ReplayLog) -> Callable[[int], None]:
    return lambda done: report(number, done, len(log.events))


# What a process of the pool keeps between logs.
_OF_PROCESS: dict[str, tuple[ReplayOptions, Completer]] = {}


def _begin(options: ReplayOptions, open_model: OpenModel) -> None:
    _OF_PROCESS["model"] = options, open_model(options)


def _play(task: Task) -> tuple[int, LogResult]:
    options, completer = _OF_PROCESS["model"]
    return task[0], replay_log(task[1], completer, options)


def _digest(log: ReplayLog) -> str:
    content = log.name, log.kind, list(log.events), sorted(log.project.items())
    return hashlib.sha256(repr(content).encode(errors="surrogatepass")).hexdigest()[:24]


def _weights(options: ReplayOptions) -> str | None:
    if options.upstream is not None:
        return None
    folder = options.model or nano_path()
    return weights_hash(folder) if folder.is_dir() else weights_id(folder)
