"""`calomel calibrate`: fit how likely suggestions are to be accepted, from a user's own outcomes or from replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calomel.cli.chosen import AnyModel, AnyUpstream, UpstreamModel, chosen
from calomel.cli.output import CommandError, InputError, console

if TYPE_CHECKING:
    from calomel.infer.completer import ModelInfo
    from calomel.selectivity.calibrator import Calibrator
    from calomel.selectivity.fit import Fit
    from calomel.selectivity.sample import Sample

_KINDS = ("fill", "edit")


def calibrate(
    samples: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE...", help="Samples from `calomel replay --samples`. Default: your outcome log."),
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Outcome log to read. Default: yours.")] = None,
    model: AnyModel = None,
    upstream: AnyUpstream = None,
    upstream_model: UpstreamModel = None,
    out: Annotated[Path | None, typer.Option(help="Output. Default: your own calibrator.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore the shipped fit.")] = False,
    recall: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Fit recall instead, on files from `calomel corpus`; needs --out."),
    ] = None,
    holes: Annotated[int | None, typer.Option("--gaps", min=1, help="With --recall: gaps of each kind.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the quality of the fit; write nothing.")] = False,
) -> None:
    """Fit the filter to you.

    It prints how well the fit works on outcomes that it did not use.
    """
    from calomel.selectivity.calibrator import CALIBRATOR_FILE, Calibrator
    from calomel.selectivity.fit import TooFewError, fit, usable
    from calomel.suggest.judging import user_calibrator_path

    choice = chosen({**locals(), "device": None})
    if samples and log is not None:
        raise InputError("--samples and --log cannot be combined", "remove one of them")
    if recall is not None:
        if choice.upstream is not None:
            raise InputError("--recall needs a model of Calomel's own engine", "--model nano")
        _fit_recall(recall, choice.model, out, holes, dry_run=dry_run)
        return
    info = choice.info()
    # A user's own fit starts from the calibrator beside the weights each time, so that no outcome counts twice.
    shipped = Calibrator() if info.tokenizer is None else Calibrator.of_folder(Path(info.tokenizer).parent)
    outcomes = _read(samples or [], log, info)
    printed = console(wrap=True)
    fits: dict[str, Fit] = {}
    for kind in _KINDS:
        try:
            start = shipped.kinds.get(kind)
            if fresh and start is not None:
                # Texts that were given up are in no log, but in the samples of a replay.
                start = replace(start, weights={}, bias=0.0, floors={} if samples else start.floors)
            fits[kind] = fit(usable(outcomes, kind), start)
        except TooFewError as error:
            printed.print(f"{kind}: not fitted. {error}.")
            continue
        _show(kind, fits[kind])
    made = _made(outcomes, fits, shipped)
    for kind in made.kinds:
        named = ", ".join(f"{name} {threshold:.3f}" for name, threshold in made.thresholds(kind).items())
        printed.print(f"{kind}: {named}")
    if dry_run:
        return
    if out is None:
        path, made = user_calibrator_path(info.weights), replace(made, model=info.weights)
    else:
        path, made = out / CALIBRATOR_FILE if out.is_dir() else out, replace(made, model="")
    made.write(path)
    printed.print(f"written to {path}")


def _fit_recall(documents: Path, model: Path | None, out: Path | None, holes: int | None, *, dry_run: bool) -> None:
    """Fit a model's `recall.json`, and write it to the folder `out`."""
    from calomel.bench.recall_fit import fit_recall
    from calomel.selectivity.fit import TooFewError

    if out is None and not dry_run:
        raise InputError("--recall writes recall.json into a folder", "name it with --out")
    printed = console(wrap=True)
    try:
        made = fit_recall(documents, model, holes_per_kind=holes)
    except TooFewError as error:
        raise CommandError(str(error), "a higher --gaps") from error
    drafts = [one for one in made.samples if one.draft is not None]
    printed.print(
        f"{len(made.samples):,} gaps, the model's own answer right in {sum(one.own_right for one in made.samples):,}; "
        f"{len(drafts):,} recalled texts, {sum(one.draft_right for one in drafts):,} of them right"
    )
    for part in ("prior", "draft", "own"):
        weights = ", ".join(f"{name} {value:.3f}" for name, value in getattr(made.worth, part).items())
        printed.print(f"{part}: {weights}")
    if out is not None and not dry_run:
        made.worth.write(out)
        printed.print(f"written to {out / 'recall.json'}")


def _made(outcomes: Sequence[Sample], fits: Mapping[str, Fit], shipped: Calibrator) -> Calibrator:
    """The calibrator of the fits; kinds without one get scale and offset corrected together, if that is possible."""
    from calomel.selectivity.calibrator import Calibrator
    from calomel.selectivity.fit import TooFewError, corrected_together, usable

    kinds = {kind: made.calibrator for kind, made in fits.items()}
    rest = Calibrator({kind: each for kind, each in shipped.kinds.items() if kind not in fits})
    try:
        left = [sample for kind in rest.kinds for sample in usable(outcomes, kind)]
        kinds |= corrected_together(left, rest).kinds
        console().print(f"{', '.join(sorted(rest.kinds))}: scale and offset corrected together.")
    except TooFewError as error:
        if not fits:
            message = f"the filter stays as it is: {error}"
            raise CommandError(message, "use Calomel for some days, then run calomel calibrate again") from error
    return Calibrator({**shipped.kinds, **kinds})


def _read(paths: Sequence[Path], log: Path | None, info: ModelInfo) -> list[Sample]:
    """Samples, or those of an outcome log."""
    from calomel.selectivity.sample import read_samples
    from calomel.suggest.outcome_history import outcome_samples
    from calomel.suggest.outcome_log import each_record, outcome_log_path

    if paths:
        return list(read_samples(paths))
    if log is not None and not log.exists():
        raise InputError(f"{log} does not exist", "leave --log out to read your own outcome log")
    return outcome_samples(filter(None, each_record(log or outcome_log_path())), info.id)


def _show(kind: str, made: Fit) -> None:
    from calomel.report.result import Table

    report = made.calibrator.report
    printed = console(wrap=True)
    printed.print(
        f"{kind}: {report['samples']:,} suggestions from {report['groups']} days (or packages), {report['accepted']:,} "
        "accepted; measured on outcomes not used for the fit"
    )
    worth = [
        (name, f"{each.ece:.4f}", f"{each.auroc:.4f}", f"{each.log_loss:.4f}")
        for name, each in (("before", made.before), ("after", made.after))
    ]
    lines = [
        (f"{each['probability']:.2f}", f"{each['count']:,}", f"{each['accepted']:.2f}")
        for each in report["reliability"]
    ]
    printed.print(Table("", ("", "ECE", "AUROC", "log-loss"), worth).to_rich())
    printed.print(Table("", ("predicted", "count", "accepted"), lines).to_rich())
