"""`calomel bench selectivity`: what the filter is worth on samples of replays that it was not fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calomel.bench.machine import describe_run
from calomel.bench.report import Report, Table, Value, number_cell, percent_cell, put_interval
from calomel.bench.selectivity_figures import SelectivityFigures, halves
from calomel.bench.stats import Interval
from calomel.selectivity.calibrator import Calibrator
from calomel.selectivity.sample import Sample, read_samples
from calomel.suggest.gate import THRESHOLDS

STEPS: Final = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
NOTES: Final = (
    "A sample is a candidate that was judged while a log was played and nothing was shown.",
    "The simulated person of `calomel replay` says what would have become of it; of less than four letters nobody can.",
    "Everything: each question's surest candidate, whatever it is.",
    "Lost: of those that would have been accepted, the share that filters or threshold hold back.",
    "Intervals: bootstrap over minutes of logs; of none or all, Wilson's.",
    "Raw: exp of the mean log-probability of a fill's tokens, and the logistic of an edit's likelihood ratio.",
    "Filters: of all candidates, so that a question may lose one and keep another; each filter by itself.",
)


@dataclass(frozen=True, slots=True)
class SelectivityOptions:
    """What to judge.

    Attributes:
        samples: files of `calomel replay --samples`; each is reported apart.
        model: checkpoint folder whose calibrator is judged; None for the shipped one.
        personal: also fit to the first half of each file, and judge on its second.
        seed: of the bootstrap.
        json, results: where to write.
    """

    samples: tuple[Path, ...]
    model: Path | None = None
    personal: bool = False
    seed: int = 0
    json: Path | None = None
    results: Path | None = None


def run_selectivity(options: SelectivityOptions) -> Report:
    """Judge, and write what was asked for. Raises SampleError, CalibratorError, OSError."""
    from calomel.weights import nano_path

    calibrator = Calibrator.of_folder(options.model or nano_path())
    flat: dict[str, Value] = {}
    tables: list[Table] = []
    for path in options.samples:
        name = path.stem
        samples = list(read_samples([path]))
        figures = SelectivityFigures(samples, calibrator, options.seed)
        tables += _tables(name, figures, calibrator, flat)
        if options.personal:
            tables.append(_personal(name, samples, calibrator, flat))
    report = Report("bench selectivity", flat, tuple(tables), NOTES, describe_run())
    report.write(json_path=options.json, results=options.results)
    return report


def _tables(name: str, figures: SelectivityFigures, calibrator: Calibrator, flat: dict[str, Value]) -> list[Table]:
    flat[f"{name}.questions"] = figures.questions
    flat[f"{name}.candidates"] = len(figures.samples)
    flat[f"{name}.too_short"] = figures.undecided
    flat[f"{name}.accepted"] = figures.accepted
    for percent in (50, 99):
        flat[f"{name}.judging_ms_p{percent}"] = figures.time(percent)
    title = (
        f"{name}: {len(figures.samples)} candidates of {figures.questions} questions, {figures.accepted} of their "
        f"surest would be accepted ({figures.undecided} more are too short or came too late)"
    )
    return [
        _ranking(title, name, figures, flat),
        _thresholds(name, figures, calibrator, flat),
        _filters(name, figures, flat),
    ]


def _ranking(title: str, name: str, figures: SelectivityFigures, flat: dict[str, Value]) -> Table:
    rows: list[tuple[str, ...]] = []
    raw = Calibrator()
    for label, kind, judge in (
        ("all", None, None),
        ("fill", "fill", None),
        ("edit", "edit", None),
        ("all, raw", None, raw),
        ("fill, raw", "fill", raw),
        ("edit, raw", "edit", raw),
    ):
        found = figures.ranking(kind, judge)
        for figure, interval in found.items():
            put_interval(flat, f"{name}.{label.replace(', ', '_')}.{figure}", interval)
        size = next((str(each.n) for each in found.values() if each is not None), "0")
        rows.append((label, size, *(_plain(each) for each in found.values())))
    return Table(title, ("probabilities of", "n", "AUROC", "ECE", "Brier", "AURC"), tuple(rows))


def _thresholds(name: str, figures: SelectivityFigures, calibrator: Calibrator, flat: dict[str, Value]) -> Table:
    named = {**THRESHOLDS, **calibrator.thresholds}
    rows = []
    for label, value in [*named.items(), *((f"{step:g}", step) for step in STEPS)]:
        found = figures.threshold(value)
        key = f"{name}.at_{label}"
        flat[f"{key}.threshold"] = value
        flat[f"{key}.shown"] = found.shown
        for figure in ("fewer", "lost", "acceptance", "characters"):
            put_interval(flat, f"{key}.{figure}", getattr(found, figure))
        rows.append(
            (
                label if label.startswith("0") else f"{label} ({value:.3f})",
                str(found.shown),
                percent_cell(found.fewer),
                percent_cell(found.lost),
                percent_cell(found.acceptance),
                percent_cell(found.characters),
            )
        )
    columns = ("threshold", "shown", "fewer", "lost", "accepted of shown", "characters kept")
    return Table(f"{name}: thresholds against everything", columns, tuple(rows))


def _filters(name: str, figures: SelectivityFigures, flat: dict[str, Value]) -> Table:
    rows = []
    for each in figures.filters():
        flat[f"{name}.filter.{each.name}.dropped"] = each.dropped
        flat[f"{name}.filter.{each.name}.accepted"] = each.accepted
        put_interval(flat, f"{name}.filter.{each.name}.cost", each.of)
        rows.append((each.name, str(each.dropped), str(each.accepted), percent_cell(each.of)))
    columns = ("filter", "dropped", "of these would be accepted", "share of all accepted")
    return Table(f"{name}: hard filters", columns, tuple(rows))


def _personal(name: str, samples: Sequence[Sample], shipped: Calibrator, flat: dict[str, Value]) -> Table:
    """What the first half of somebody's log teaches about the second."""
    from calomel.selectivity.fit import TooFewError, personal

    first, second = halves(samples)
    columns = ("calibrator", "ECE", "AUROC", "shown", "accepted", "characters saved")
    title = f"{name}: fitted to the first half, judged on the second"
    try:
        own = personal(first, shipped)
    except TooFewError as error:
        return Table(title, columns, ((f"refused: {error}", *["-"] * 5),))
    before, after = SelectivityFigures(second, shipped), SelectivityFigures(second, own)
    named: Mapping[str, float] = {**THRESHOLDS, **shipped.thresholds}
    count = before.threshold(named["balanced"]).shown
    rows = []
    for label, figures in (("shipped", before), ("own", after)):
        found = figures.ranking()
        taken, saved = figures.surest(count)
        for figure in ("ece", "auroc"):
            put_interval(flat, f"{name}.{label}.{figure}", found[figure])
        flat[f"{name}.{label}.accepted"], flat[f"{name}.{label}.characters"] = taken, saved
        rows.append((label, _plain(found["ece"]), _plain(found["auroc"]), str(count), str(taken), str(saved)))
    return Table(title, columns, tuple(rows))


def _plain(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    return f"{number_cell(interval.value, 3)} [{interval.low:.3f}, {interval.high:.3f}]"
