"""`calomel calibrate`: fit how likely suggestions get accepted, from a user's own outcomes or from replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calomel.cli.errors import CommandError, InputError, engine_errors_reported

if TYPE_CHECKING:
    from rich.console import Console

    from calomel.selectivity.calibrator import Calibrator
    from calomel.selectivity.fit import Fit
    from calomel.selectivity.sample import Sample
    from calomel.suggest.completer import ModelInfo

_KINDS = ("fill", "edit")


def calibrate(
    samples: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE...", help="What `calomel replay --samples` wrote. Default: your outcome log."),
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Another outcome log than yours.")] = None,
    model: Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write. Default: where the editors look for your own calibrator.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start from nothing, not from what the model has.")] = False,
    thresholds_on: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE...", help="Samples of code that the model has not seen, to set thresholds on."),
    ] = None,
    wanted: Annotated[
        float | None,
        typer.Option(min=0.01, max=0.99, help="Find the smallest threshold with this share accepted, 90 % sure."),
    ] = None,
    recall: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Fit what recalled texts are worth instead, on files of `calomel corpus`; needs --out."
        ),
    ] = None,
    holes: Annotated[int | None, typer.Option(min=1, help="With --recall: holes of each kind.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what it is worth, write nothing.")] = False,
) -> None:
    """Fit the filter to outcomes, print what it is worth on outcomes that it was not fitted to, and write it."""
    from calomel.selectivity.calibrator import Calibrator, CalibratorError, KindCalibrator
    from calomel.selectivity.fit import TooFewError, fit, usable
    from calomel.suggest.launch import describe

    if samples and log is not None:
        raise InputError("name --samples or --log, not both")
    if recall is not None:
        _fit_recall(recall, model, out, holes, dry_run=dry_run)
        return
    try:
        info = describe(model)
        known = Calibrator() if fresh else _known(info)
    except (OSError, CalibratorError, ValueError) as error:
        raise InputError(str(error)) from error
    found = _read(samples or [], log, info)
    console = _console()
    fits: dict[str, Fit] = {}
    for kind in _KINDS:
        chosen = usable(found, kind)
        start: KindCalibrator | None = known.kinds.get(kind)
        try:
            fits[kind] = fit(chosen, start)
        except TooFewError as error:
            console.print(f"{kind}: not fitted. {error}.", markup=False)
            continue
        _show(console, kind, fits[kind])
    if wanted is not None:
        _promise(console, [(usable(found, kind), made) for kind, made in fits.items()], wanted)
    made = _made(found, fits, known, console)
    if thresholds_on:
        made = _kept_on(made, thresholds_on)
    for name, threshold in sorted(made.thresholds.items(), key=lambda each: -each[1]):
        console.print(f"{name}: {threshold:.3f}", markup=False)
    if not dry_run:
        path = _path(out, info)
        replace(made, model=info.weights if out is None else "").write(path)
        console.print(f"written to {path}", markup=False)


def _fit_recall(documents: Path, model: Path | None, out: Path | None, holes: int | None, *, dry_run: bool) -> None:
    """Fit `recall.json` of a model, and write it into the folder `out`."""
    from calomel.bench.recall_fit import fit_recall
    from calomel.report.heldout import BenchDataError

    if out is None and not dry_run:
        raise InputError("--recall writes recall.json into a folder: name it with --out")
    console = _console()
    with engine_errors_reported():
        try:
            made = fit_recall(documents, model, holes_per_kind=holes)
        except BenchDataError as error:
            raise CommandError(str(error)) from error
    drafts = [one for one in made.samples if one.draft is not None]
    console.print(
        f"{len(made.samples):,} holes, {sum(one.own_right for one in made.samples):,} of own answers right; "
        f"{len(drafts):,} recalled texts, {sum(one.draft_right for one in drafts):,} of them right",
        markup=False,
    )
    for part in ("prior", "draft", "own"):
        weights = ", ".join(f"{name} {value:.3f}" for name, value in getattr(made.worth, part).items())
        console.print(f"{part}: {weights}", markup=False)
    if out is not None and not dry_run:
        made.worth.write(out)
        console.print(f"written to {out / 'recall.json'}", markup=False)


def _made(found: Sequence[Sample], fits: Mapping[str, Fit], known: Calibrator, console: Console) -> Calibrator:
    """What the fits come to; kinds without one have scale and offset corrected together, where that is possible."""
    from calomel.selectivity.calibrator import Calibrator
    from calomel.selectivity.fit import TooFewError, corrected_together, named_thresholds, usable, with_thresholds

    kinds = {kind: made.calibrator for kind, made in fits.items()}
    rest = Calibrator({kind: each for kind, each in known.kinds.items() if kind not in fits})
    try:
        left = [sample for kind in rest.kinds for sample in usable(found, kind)]
        kinds |= corrected_together(left, rest).kinds
        console.print(f"{', '.join(sorted(rest.kinds))}: scale and offset corrected together.", markup=False)
    except TooFewError as error:
        if not fits:
            message = f"nothing was fitted, the calibrator that is there stays in use: {error}"
            raise CommandError(message) from error
    made = Calibrator({**known.kinds, **kinds}, known.thresholds)
    if set(fits) != set(made.kinds):
        return with_thresholds(made, found)
    chosen = [sample for kind in fits for sample in usable(found, kind)]
    probabilities = [each for fitted in fits.values() for each in fitted.probabilities]
    return replace(made, thresholds=named_thresholds(chosen, probabilities) or known.thresholds)


def _kept_on(made: Calibrator, paths: Sequence[Path]) -> Calibrator:
    """The same with thresholds that keep their promises on these samples."""
    from calomel.selectivity.fit import with_thresholds
    from calomel.selectivity.sample import SampleError, read_samples

    try:
        return with_thresholds(made, list(read_samples(paths)))
    except (SampleError, OSError, UnicodeDecodeError) as error:
        raise InputError(f"--thresholds-on: {error}") from error


def _known(info: ModelInfo) -> Calibrator:
    """What lies beside the weights: a user's own fit starts there each time, so that no outcome counts twice."""
    from calomel.selectivity.calibrator import Calibrator

    return Calibrator() if info.tokenizer is None else Calibrator.of_folder(Path(info.tokenizer).parent)


def _read(paths: Sequence[Path], log: Path | None, info: ModelInfo) -> list[Sample]:
    from calomel.selectivity.sample import SampleError, read_samples
    from calomel.suggest.outcome_history import outcome_samples, read_outcomes
    from calomel.suggest.outcome_log import outcome_log_path

    try:
        if paths:
            return list(read_samples(paths))
        path = log or outcome_log_path()
        if log is not None and not log.exists():
            raise InputError(f"{log} does not exist")
        return outcome_samples(read_outcomes(path).records, info.id)
    except SampleError as error:
        raise InputError(str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the samples cannot be read: {error}") from error


def _path(out: Path | None, info: ModelInfo) -> Path:
    from calomel.selectivity.calibrator import CALIBRATOR_FILE
    from calomel.suggest.judging import user_calibrator_path

    if out is None:
        return user_calibrator_path(info.weights)
    return out / CALIBRATOR_FILE if out.is_dir() else out


def _show(console: Console, kind: str, made: Fit) -> None:
    from rich.table import Table

    report = made.calibrator.report
    console.print(
        f"{kind}: {report['samples']:,} suggestions of {report['groups']} days or packages, {report['accepted']:,} "
        "accepted; figures of outcomes that were not fitted to",
        markup=False,
    )
    table = Table("", "ECE", "AUROC", "log-loss")
    for name, quality in (("before", made.before), ("after", made.after)):
        table.add_row(name, f"{quality.ece:.4f}", f"{quality.auroc:.4f}", f"{quality.log_loss:.4f}")
    console.print(table)
    rows = Table("said", "count", "accepted")
    for each in report["reliability"]:
        rows.add_row(f"{each['probability']:.2f}", f"{each['count']:,}", f"{each['accepted']:.2f}")
    console.print(rows)


def _promise(console: Console, fits: Sequence[tuple[Sequence[Sample], Fit]], wanted: float) -> None:
    from calomel.selectivity.fit import needed, smallest_threshold

    probabilities = [each for _, made in fits for each in made.probabilities]
    accepted = [sample.accepted for found, _ in fits for sample in found]
    promise = smallest_threshold(probabilities, accepted, wanted)
    if promise is not None:
        console.print(
            f"From {promise.threshold:.2f} on, at least {wanted:.0%} get accepted, 90 % sure: {promise.accepted} of "
            f"{promise.shown}. To use it: suggest.aggressiveness = {promise.threshold:.2f}",
            markup=False,
        )
        return
    best = max(probabilities, default=0.0)
    sure = [taken for probability, taken in zip(probabilities, accepted, strict=True) if probability >= wanted]
    rate = sum(sure) / len(sure) if sure else 0.0
    count = needed(wanted, rate)
    why = (
        f"of {len(sure)} that were given {wanted:.0%} or more, {rate:.0%} were"
        if sure
        else f"none was given more than {best:.0%}"
    )
    more = f"; at this rate {count:,} of them would prove it" if count is not None else ""
    console.print(f"No threshold is proven to get {wanted:.0%} accepted: {why}{more}.", markup=False)


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)
