"""Replays many logs: in this process or in several, going on where an interrupted run stopped, results in order."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from calomel.bench.journal import Journal, cache_folder
from calomel.replay.events import ReplayLog
from calomel.replay.log_time import StuckError, run
from calomel.replay.opportunity import LogResult
from calomel.replay.options import ReplayOptions
from calomel.replay.player import Player
from calomel.replay.timed_completer import Answers
from calomel.suggest.completer import Completer

_POLL_SECONDS: Final = 0.2
# A progress bar need not know more often.
_EVENTS_PER_REPORT: Final = 50

# Makes the model of one process; a function of a module, so that other processes find it.
OpenModel = Callable[[ReplayOptions], Completer]


class ReplayError(Exception):
    """A run cannot be done; the message is a sentence for its user."""


class Report(Protocol):
    """Told how far each log is."""

    def __call__(self, log: int, done: int, total: int) -> None:
        """`done` of `total` events of the log with this number."""


def nobody(log: int, done: int, total: int) -> None:
    """Tells nobody."""


def open_engine(options: ReplayOptions) -> Completer:
    """The engine in this process, with the model that the options name."""
    from calomel.suggest.in_process import open_completer

    completer = open_completer(options.model, options.device, options.threads)
    completer.speculate(wanted=options.speculate)
    return completer


@dataclass(frozen=True, slots=True)
class Notes:
    """Where an interrupted run leaves what it has.

    Attributes:
        folder: of the journals.
        run: names everything that all results depend on.
    """

    folder: Path
    run: str

    def results(self) -> Journal:
        """Results of whole logs."""
        return Journal(self.folder, "replay", {"run": self.run})

    def answers(self, log: str) -> Journal:
        """The model's answers within one log, by its digest."""
        return Journal(self.folder, "replay-answers", {"run": self.run, "log": log})


def replay_logs(
    logs: Sequence[ReplayLog],
    options: ReplayOptions,
    *,
    jobs: int = 1,
    report: Report = nobody,
    open_model: OpenModel = open_engine,
    folder: Path | None = None,
    resume: bool = True,
    ray: bool = False,
) -> list[LogResult]:
    """The results of all logs, in their order, however they were computed.

    What an interrupted run with the same logs, options, model and code has done is not done again; a run that comes to
    its end leaves nothing behind.

    Args:
        logs: to be replayed.
        options: of all of them.
        jobs: processes; each has its own model.
        report: told of the progress.
        open_model: makes a model.
        folder: of the journals.
        resume: go on where an interrupted run stopped.
        ray: compute on a Ray cluster instead of here.

    Raises:
        ReplayError: Ray is not installed.
    """
    options = _with_threads(options, jobs, ray=ray)
    digests = [_digest(log) for log in logs]
    # Two runs at once, of other logs, must not share a journal: the first to end would take it from the other.
    notes = Notes(folder or cache_folder(), _digest_of_run(options, open_model, digests))
    if not resume:
        _forget(notes, digests)
    with notes.results() as journal:
        results: list[LogResult | None] = [_known(journal.get(digest)) for digest in digests]
        missing = [number for number, result in enumerate(results) if result is None]
        for number, log in enumerate(logs):
            if results[number] is not None:
                report(number, len(log.events), len(log.events))
        todo = [(number, digests[number], logs[number]) for number in missing]
        for number, result in _computed(todo, options, notes, jobs, report, open_model, ray=ray):
            journal.put(digests[number], result.to_json())
            results[number] = result
    _forget(notes, digests)
    return [result for result in results if result is not None]


Task = tuple[int, str, ReplayLog]


def replay_log(
    log: ReplayLog,
    completer: Completer,
    options: ReplayOptions,
    *,
    answers: Answers | None = None,
    report: Callable[[int], None] = lambda _: None,
) -> LogResult:
    """One log. A model that stops answering ends it early; the result says so in `error`."""

    async def play() -> LogResult:
        player = Player(log, completer, await completer.info(), options, answers=answers)
        player.report = lambda done: report(done) if done % _EVENTS_PER_REPORT == 0 else None
        try:
            return await player.play()
        except StuckError as error:
            player.result.error = str(error)
            return player.result

    result = run(play())
    report(len(log.events))
    return result


def _computed(
    todo: Sequence[Task],
    options: ReplayOptions,
    notes: Notes,
    jobs: int,
    report: Report,
    open_model: OpenModel,
    *,
    ray: bool,
) -> Iterator[tuple[int, LogResult]]:
    if not todo:
        return iter(())
    if ray:
        from calomel.replay.ray_runs import computed_on_ray

        return computed_on_ray(todo, options, jobs, report, open_model)
    if jobs == 1 or len(todo) == 1:
        return _here(todo, options, notes, report, open_model)
    return _in_processes(todo, options, notes, min(jobs, len(todo)), report, open_model)


def _here(
    todo: Sequence[Task], options: ReplayOptions, notes: Notes, report: Report, open_model: OpenModel
) -> Iterator[tuple[int, LogResult]]:
    completer = open_model(options)
    try:
        for number, digest, log in todo:
            with notes.answers(digest) as answers:
                told = _told(report, number, len(log.events))
                yield number, replay_log(log, completer, options, answers=answers, report=told)
    finally:
        run(completer.aclose())


def _told(report: Report, number: int, total: int) -> Callable[[int], None]:
    return lambda done: report(number, done, total)


def _in_processes(
    todo: Sequence[Task], options: ReplayOptions, notes: Notes, jobs: int, report: Report, open_model: OpenModel
) -> Iterator[tuple[int, LogResult]]:
    # A forked process would share the parent's threads' locks.
    context = multiprocessing.get_context("spawn")
    news: multiprocessing.Queue[tuple[int, int, int]] = context.Queue()
    with ProcessPoolExecutor(jobs, context, _Worker.begin, (options, notes, open_model, news)) as pool:
        waiting: dict[Future[LogResult], int] = {pool.submit(_Worker.play, task): task[0] for task in todo}
        try:
            while waiting:
                done, _ = wait(waiting, timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED")
                _pass_on(news, report)
                for future in done:
                    yield waiting.pop(future), future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _pass_on(news: multiprocessing.Queue[tuple[int, int, int]], report: Report) -> None:
    with contextlib.suppress(queue.Empty):
        while True:
            report(*news.get_nowait())


class _Worker:
    """What a process of a pool keeps between two logs."""

    options: ReplayOptions
    notes: Notes
    completer: Completer
    news: multiprocessing.Queue[tuple[int, int, int]]

    @classmethod
    def begin(
        cls,
        options: ReplayOptions,
        notes: Notes,
        open_model: OpenModel,
        news: multiprocessing.Queue[tuple[int, int, int]],
    ) -> None:
        cls.options, cls.notes, cls.news = options, notes, news
        cls.completer = open_model(options)

    @classmethod
    def play(cls, task: Task) -> LogResult:
        number, digest, log = task
        total = len(log.events)
        with cls.notes.answers(digest) as answers:
            told = _told(lambda log, done, total: cls.news.put((log, done, total)), number, total)
            return replay_log(log, cls.completer, cls.options, answers=answers, report=told)


def _with_threads(options: ReplayOptions, jobs: int, *, ray: bool) -> ReplayOptions:
    """Several engines share the processors; one has what torch takes."""
    if options.threads is not None or (jobs == 1 and not ray):
        return options
    return replace(options, threads=1 if ray else max(1, (os.cpu_count() or 1) // jobs))


def _known(record: dict[str, Any] | None) -> LogResult | None:
    try:
        return None if record is None else LogResult.from_json(record)
    except (KeyError, TypeError):
        return None


def _forget(notes: Notes, digests: Sequence[str]) -> None:
    for journal in (notes.results(), *(notes.answers(digest) for digest in digests)):
        journal.close()
        journal.path.unlink(missing_ok=True)


def _digest(log: ReplayLog) -> str:
    return hashlib.sha256(repr((log.name, log.kind, list(log.events))).encode(errors="surrogatepass")).hexdigest()[:24]


def _digest_of_run(options: ReplayOptions, open_model: OpenModel, logs: Sequence[str]) -> str:
    """Of the options, the model's weights, the code and the logs: what all results of a run depend on."""
    digest = hashlib.sha256(repr((asdict(options), open_model.__module__, open_model.__qualname__, *logs)).encode())
    for folder in sorted(map(str, _code_folders())):
        for path in sorted(Path(folder).rglob("*.py")):
            digest.update(path.read_bytes())
    weights = _weights(options)
    if weights is not None:
        found = weights.stat()
        digest.update(repr((str(weights), found.st_size, found.st_mtime_ns)).encode())
    return digest.hexdigest()[:24]


def _code_folders() -> Sequence[str]:
    import calomel

    return list(calomel.__path__)


def _weights(options: ReplayOptions) -> Path | None:
    from calomel.weights import nano_path

    folder = options.model or nano_path()
    return next(iter(sorted(folder.glob("*.safetensors"))), None) if folder.is_dir() else None
