"""`calomel refit`: everything that is fitted to a model's answers, fitted anew for a checkpoint, within a time.

Recalled text comes first, since it changes what the model proposes. Then a copy of the checkpoint without a calibrator,
so that no maker is left unasked, answers while files are written and edited. Each kind of suggestion is fitted from
nothing and from the old fit, and the better one on other packages is kept. Every stage ends at its share of the time,
with what it has; its questions come in a drawn order, so that the first of them are a sample of all.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from calomel.bench.held_edits import Contenders, ask_moments, reordered
from calomel.bench.recall_fit import RecallSample, fit_recall
from calomel.bench.suite import SuiteError
from calomel.infer.recall import CopyScorer, probability
from calomel.replay.logs import read_logs
from calomel.replay.opportunity import ReplayOptions, SuggestionKind
from calomel.replay.runs import open_engine, replay_logs
from calomel.replay.stories import chosen, read_stories
from calomel.report.heldout import BenchDataError
from calomel.report.result import Table
from calomel.report.running import Progress
from calomel.selectivity.calibrator import CALIBRATOR_FILE, Calibrator, KindCalibrator
from calomel.selectivity.fit import Fit, Quality, TooFewError, fit, quality_of, surest, usable
from calomel.selectivity.sample import Sample
from calomel.storage import write_whole
from calomel.weights import nano_path
from calomel.workspace.settings import SuggestSettings

SAMPLES_FILE: Final = "samples.jsonl"
RECALL: Final = "recall"
_KINDS: Final[tuple[SuggestionKind, ...]] = ("fill", "edit")
# When the stages end, as shares of the time; what is left is for the fits.
_RECALL, _WRITING, _COMMITS, _STORIES = 0.12, 0.5, 0.7, 0.8
_GAPS_PER_KIND: Final = 220
# Logs at most, of files that are written and of stories.
_WRITTEN, _TOLD = 210, 30
_LATENCY_SECONDS: Final = 0.3


@dataclass(frozen=True, slots=True)
class RefitOptions:
    """What to fit, and on what.

    Attributes:
        checkpoint: its folder; nothing is written there.
        documents: files of a corpus that the model was not trained on.
        stories: editing sequences of the same repositories.
        minutes: all of it.
        device: of the model.
        jobs: processes that replay logs, each with its own engine.
    """

    checkpoint: Path
    documents: Path
    stories: Path
    minutes: float = 20.0
    device: str = "cpu"
    jobs: int = 1


@dataclass(slots=True)
class Refitted:
    """What was made.

    Attributes:
        tables: quality before (the checkpoint's own fit, or nano's, on the same answers) and after, for people.
        missing: what could not be fitted, by `recall`, `fill` or `edit`, and why.
    """

    tables: list[Table] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


def refit(options: RefitOptions, into: Path, say: Callable[[str], None]) -> Refitted:
    """Write `recall.json`, `calibrator.json` and the samples of the latter into the folder `into`.

    What has too few answers keeps the checkpoint's fit, if it has one, and is `missing`. `say` gets a line a stage.

    Raises:
        BenchDataError, LogError: documents or stories are absent, damaged or held out.
        CalibratorError, CheckpointError, TokenizerError: the checkpoint cannot be used.
        SuiteError: the model failed.
    """
    began = time.monotonic()

    def until(share: float) -> Callable[[], bool]:
        return lambda: time.monotonic() - began > 60 * options.minutes * share

    def told(what: str) -> None:
        say(f"{time.monotonic() - began:6.0f} s  {what}")

    _refuse_held_out(options.stories)
    own = Calibrator.of_folder(options.checkpoint)
    made = Refitted()
    into.mkdir(parents=True, exist_ok=True)
    with _bare(options.checkpoint) as bare:
        _fit_recall(options, bare, into, made, until(_RECALL), told)
        bare_options = ReplayOptions(model=bare, device=options.device, latency=_LATENCY_SECONDS, samples=True)
        samples = _of_logs(options.documents, bare_options, "fill", _WRITTEN, options.jobs, until(_WRITING))
        told(f"{len(samples):,} candidates for files that are written")
        samples += _of_commits(options.stories, bare_options, until(_COMMITS))
        told(f"{len(samples):,} with those at moments of commits")
        samples += _of_logs(options.stories, bare_options, "edit", _TOLD, options.jobs, until(_STORIES))
        told(f"{len(samples):,} with those while edits are typed")
    write_whole(into / SAMPLES_FILE, "".join(sample.to_line() for sample in samples))
    kinds = dict(own.kinds)
    for kind in _KINDS:
        try:
            fitted = _fit_kind(kind, usable(samples, kind), own, made)
        except TooFewError as error:
            made.missing[kind] = str(error)
            continue
        kinds[kind] = fitted.calibrator
    if kinds:
        Calibrator(kinds).write(into / CALIBRATOR_FILE)
    told("fitted")
    return made


@contextmanager
def _bare(checkpoint: Path) -> Iterator[Path]:
    """A copy of the checkpoint without a calibrator."""
    with tempfile.TemporaryDirectory(prefix="calomel-refit-") as landing:
        yield shutil.copytree(checkpoint, Path(landing) / "model", ignore=shutil.ignore_patterns(CALIBRATOR_FILE))


def _refuse_held_out(stories: Path) -> None:
    """Raises BenchDataError for stories that everything is measured on."""
    measured = {story.id for story in read_stories()}
    if shared := sum(story.id in measured for story in read_stories(stories)):
        raise BenchDataError(f"{stories} has {shared} held-out stories; leave them out")


def _fit_recall(
    options: RefitOptions,
    bare: Path,
    into: Path,
    made: Refitted,
    over: Callable[[], bool],
    told: Callable[[str], None],
) -> None:
    """Fit recall, and write it into `into` and `bare`."""
    before = CopyScorer.read(options.checkpoint) or CopyScorer.read(nano_path())
    try:
        fitted = fit_recall(options.documents, bare, device=options.device, holes_per_kind=_GAPS_PER_KIND, over=over)
    except TooFewError as error:
        made.missing[RECALL] = str(error)
        return
    told(f"{len(fitted.samples):,} gaps for {RECALL}")
    for folder in (into, bare):
        fitted.worth.write(folder)
    found = [(when, worth) for when, worth in (("before", before), ("after", fitted.worth)) if worth is not None]
    rows = [(f"{what}, {when}", *row) for when, worth in found for what, row in _recall_rows(worth, fitted.samples)]
    caption = "After: on the gaps of the fit itself, which has few numbers."
    made.tables.append(Table("Recall", ("", "n", "right", "AUROC", "ECE"), rows, caption))


def _recall_rows(worth: CopyScorer, samples: Sequence[RecallSample]) -> Iterator[tuple[str, tuple[str, ...]]]:
    drafts = [one for one in samples if one.draft is not None]
    for what, weights, features, right in (
        ("own answers", worth.own, [one.own for one in samples], [one.own_right for one in samples]),
        ("recalled texts", worth.draft, [one.draft or {} for one in drafts], [one.draft_right for one in drafts]),
    ):
        truth = np.asarray(right, dtype=np.float64)
        quality = quality_of(np.asarray([probability(weights, each) for each in features]), truth)
        yield what, (f"{len(right):,}", f"{sum(right):,}", f"{quality.auroc:.4f}", f"{quality.ece:.4f}")


def _of_logs(
    path: Path, options: ReplayOptions, kind: SuggestionKind, count: int, jobs: int, over: Callable[[], bool]
) -> list[Sample]:
    """Candidates while at most `count` logs of a file are replayed. Raises SuiteError if the model stops answering."""
    logs = read_logs(path)
    logs = random.Random(0).sample(logs, min(count, len(logs)))  # noqa: S311 - a draw that can be repeated
    options = replace(options, kinds=(kind,))
    done = [0] * len(logs)
    with Progress() as progress:
        progress.phase(f"{kind}, events", sum(len(log.events) for log in logs))

        def report(log: int, so_far: int, total: int) -> None:
            done[log] = min(so_far, total)
            progress.step(sum(done))

        results = replay_logs(logs, options, jobs=jobs, report=report, resume=False, over=over)
    for result in results:
        if result.error:
            raise SuiteError(f"{result.log} did not play to the end: {result.error}")
    return [sample for result in results for sample in result.samples]


def _of_commits(stories: Path, options: ReplayOptions, over: Callable[[], bool]) -> list[Sample]:
    """Candidates at moments within and at the end of commits, every second of them in another order."""

    async def asked() -> list[Sample]:
        moments = chosen(reordered(read_stories(stories)), ("commit",))
        async with aclosing(open_engine(options)) as completer:
            contenders = Contenders(completer, SuggestSettings(debounce_seconds=0.0), audit=True)
            with Progress() as progress:
                rows = await ask_moments(moments, contenders, progress, over=over)
        return [sample for row in rows for sample in row.samples]

    return asyncio.run(asked())


def _fit_kind(kind: str, samples: Sequence[Sample], own: Calibrator, made: Refitted) -> Fit:
    """Fit from nothing and from the old fit, and report the better one. Raises TooFewError."""
    old = own.kinds.get(kind) or Calibrator.of_folder(nano_path()).kinds.get(kind) or KindCalibrator({}, 0.0)
    # Everybody was asked, and no text was given up.
    starts = None, replace(old, hopeless=frozenset(), floors={})
    fitted = min((fit(samples, start) for start in starts), key=lambda each: each.after.log_loss)
    before = [old.probability(sample) for sample in samples]
    truth = np.asarray([sample.accepted for sample in samples], dtype=np.float64)
    worth = ("before", quality_of(np.asarray(before), truth)), ("after", fitted.after)
    groups = fitted.calibrator.report["groups"]
    title = f"{kind}: {len(samples):,} candidates from {groups} groups, {int(truth.sum()):,} right"
    made.tables.append(Table(title, ("", "AUROC", "ECE", "log-loss"), [(when, *_cells(each)) for when, each in worth]))
    rows = [
        *_promises("before", samples, before, old.thresholds),
        *_promises("after", samples, fitted.probabilities, fitted.calibrator.thresholds),
    ]
    columns = ("", "threshold", "floor, nats", "shown", "right of shown", "of all right ones")
    floors = {"before": old.floors, "after": fitted.calibrator.floors}
    cells = [
        (f"{name}, {when}", f"{threshold:.3f}", f"{floors[when][name]:.1f}" if name in floors[when] else "", *shares)
        for when, name, threshold, shares in rows
    ]
    made.tables.append(Table(f"{kind}: what is shown at each threshold", columns, cells))
    return fitted


def _cells(quality: Quality) -> tuple[str, ...]:
    return tuple(f"{value:.4f}" for value in (quality.auroc, quality.ece, quality.log_loss))


def _promises(
    when: str, samples: Sequence[Sample], probabilities: Sequence[float], thresholds: Mapping[str, float]
) -> Iterator[tuple[str, str, float, tuple[str, ...]]]:
    """What each threshold shows of the likeliest candidates: of all, right ones of these, and of all right ones."""
    best = surest(samples, probabilities)
    right = sum(sample.accepted for sample, _ in best)
    for name, threshold in thresholds.items():
        shown = [sample.accepted for sample, each in best if each >= threshold]
        shares = (len(shown), len(best)), (sum(shown), len(shown)), (sum(shown), right)
        yield when, name, threshold, tuple(f"{part / max(1, whole):.1%}" for part, whole in shares)
