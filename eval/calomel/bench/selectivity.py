"""`calomel bench selectivity`: how well the filter works on replay samples that it was not fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from calomel.replay.figures import ranking
from calomel.report.result import (
    Interval,
    Report,
    Resampling,
    Table,
    Value,
    interval_cell,
    percent_cell,
    put_interval,
    wilson,
)
from calomel.selectivity.calibrator import THRESHOLDS, Calibrator
from calomel.selectivity.sample import Sample, read_samples


@dataclass(frozen=True, slots=True)
class Threshold:
    """The effect of one threshold, against always showing each question's surest candidate.

    Attributes:
        shown: suggestions.
        fewer: share of all suggestions that is not shown.
        lost: share of the acceptable suggestions that is not shown.
        acceptance: share of shown suggestions that is accepted.
        characters: share of the characters that showing everything would have saved.
    """

    shown: int
    fewer: Interval | None
    lost: Interval | None
    acceptance: Interval | None
    characters: Interval | None


@dataclass(frozen=True, slots=True)
class FilterCost:
    """How many candidates one hard filter drops, and how many of those would have been accepted."""

    name: str
    dropped: int
    accepted: int
    of: Interval | None


class SelectivityFigures:
    """Figures of one set of samples.

    Args:
        samples: of logs; those that no user could have decided about are only counted.
        calibrator: the one to judge.
        seed: of the bootstrap over minutes of logs.
    """

    def __init__(self, samples: Sequence[Sample], calibrator: Calibrator, seed: int = 0) -> None:
        self.samples = [sample for sample in samples if sample.decided]
        self.undecided = len(samples) - len(self.samples)
        self._calibrator = calibrator
        self.probabilities = [calibrator.probability(sample) for sample in self.samples]
        # Samples from one minute of one log are correlated.
        self._clusters = [(_log(sample), int(sample.time // 60)) for sample in self.samples]
        self._seed = seed

    def ranking(self, kind: str | None = None, calibrator: Calibrator | None = None) -> dict[str, Interval | None]:
        """AUROC, ECE, Brier score and AURC over what no filter drops; for one kind, or for a rival calibrator."""
        chosen = [
            number for number, sample in enumerate(self.samples) if not sample.filters and kind in {None, sample.kind}
        ]
        judge = calibrator or self._calibrator
        scores = np.asarray([judge.probability(each) for each in self.samples])
        taken = np.asarray([float(sample.accepted) for sample in self.samples])
        return ranking(Resampling(self._clusters, self._seed), chosen, scores, taken)

    def threshold(self, thresholds: Mapping[str, float]) -> Threshold:
        """The effect of one threshold per kind, over all questions."""
        picks = self._picks
        resampling = Resampling([pick.cluster for pick in picks], self._seed)
        everything = [float(pick.everything.accepted) for pick in picks]
        all_saved = [float(pick.everything.accepted * pick.everything.saved_characters) for pick in picks]
        shown = [pick.passing if pick.probability >= thresholds[pick.everything.kind] else None for pick in picks]
        there = [float(each is not None) for each in shown]
        taken = [float(each is not None and each.accepted) for each in shown]
        saved = [float(each.accepted * each.saved_characters) if each is not None else 0.0 for each in shown]
        return Threshold(
            int(sum(there)),
            resampling.ratio([1 - each for each in there], [1.0] * len(picks)),
            resampling.ratio([every - each for every, each in zip(everything, taken, strict=True)], everything),
            resampling.share(taken, there),
            resampling.ratio(saved, all_saved),
        )

    def filters(self) -> list[FilterCost]:
        """Every filter that dropped something, the costliest first."""
        accepted = sum(sample.accepted for sample in self.samples)
        names = sorted({name for sample in self.samples for name in sample.filters})
        found = []
        for name in names:
            dropped = [sample for sample in self.samples if name in sample.filters]
            lost = sum(sample.accepted for sample in dropped)
            found.append(FilterCost(name, len(dropped), lost, wilson(lost, accepted)))
        return sorted(found, key=lambda each: (-each.accepted, -each.dropped, each.name))

    @property
    def accepted(self) -> int:
        """Questions whose surest candidate would have been accepted, ignoring filters."""
        return sum(pick.everything.accepted for pick in self._picks)

    @property
    def questions(self) -> int:
        """Questions with a candidate that a user could have decided about."""
        return len(self._picks)

    @cached_property
    def _picks(self) -> list[_Pick]:
        questions: dict[str, list[int]] = {}
        for number, sample in enumerate(self.samples):
            questions.setdefault(sample.question, []).append(number)
        return [self._pick(numbers) for numbers in questions.values()]

    def _pick(self, numbers: Sequence[int]) -> _Pick:
        surest = max(numbers, key=self.probabilities.__getitem__)
        passing = [number for number in numbers if not self.samples[number].filters]
        best = max(passing, key=self.probabilities.__getitem__, default=None)
        return _Pick(
            self.samples[surest],
            None if best is None else self.samples[best],
            0.0 if best is None else self.probabilities[best],
            self._clusters[surest],
        )


@dataclass(frozen=True, slots=True)
class _Pick:
    """For one question: its surest candidate, the surest that passes every filter, and that one's probability."""

    everything: Sample
    passing: Sample | None
    probability: float
    cluster: tuple[str, int]


def _log(sample: Sample) -> str:
    """The log in a question's name, which is made of the log, the log's entry and the kind."""
    return sample.question.rpartition(":")[0].rpartition(":")[0]


_FIGURES: Final = ("fewer", "lost", "acceptance", "characters")
KINDS: Final = ("fill", "edit")
STEPS: Final = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
NOTES: Final = (
    "A sample is a candidate from a replay that showed nothing, with the verdict of the simulated user.",
    "The simulated user of `calomel replay` accepts or rejects it; candidates under four letters are not judged.",
    "Baseline: always show each question's likeliest candidate.",
    "Lost: the share of candidates the user would have accepted that filters or the threshold hide.",
    "Intervals: bootstrap over minutes of logs; Wilson's for shares of 0 or 100 %.",
    "Raw: exp of a completion's mean log-probability, or the logistic of an edit's likelihood ratio.",
    "Filters: each filter by itself, over all candidates; a question may lose one candidate and keep another.",
)


@dataclass(frozen=True, slots=True)
class SelectivityOptions:
    """What to judge.

    Attributes:
        samples: files of `calomel replay --samples`; each is reported separately.
        model: checkpoint folder whose calibrator is judged; None for the shipped one.
        seed: of the bootstrap.
    """

    samples: tuple[Path, ...]
    model: Path | None = None
    seed: int = 0


def run_selectivity(options: SelectivityOptions) -> Report:
    """Run the bench. Raises SampleError, CalibratorError, OSError."""
    from calomel.weights import nano_path

    calibrator = Calibrator.of_folder(options.model or nano_path())
    flat: dict[str, Value] = {}
    tables: list[Table] = []
    for path in options.samples:
        name = path.stem
        samples = list(read_samples([path]))
        figures = SelectivityFigures(samples, calibrator, options.seed)
        tables += _tables(name, figures, calibrator, flat)
    return Report("bench selectivity", flat, tuple(tables), NOTES)


def _tables(name: str, figures: SelectivityFigures, calibrator: Calibrator, flat: dict[str, Value]) -> list[Table]:
    flat[f"{name}.questions"] = figures.questions
    flat[f"{name}.candidates"] = len(figures.samples)
    flat[f"{name}.too_short"] = figures.undecided
    flat[f"{name}.accepted"] = figures.accepted
    title = (
        f"{name}: {len(figures.samples)} candidates for {figures.questions} questions; the user would accept"
        f" {figures.accepted} of the surest ones ({figures.undecided} more were too short or came too late)"
    )
    return [
        _ranking(title, name, figures, flat),
        _thresholds(name, figures, calibrator, flat),
        _filters(name, figures, flat),
    ]


def _ranking(title: str, name: str, figures: SelectivityFigures, flat: dict[str, Value]) -> Table:
    rows: list[tuple[str, ...]] = []
    kinds = (("all", None), ("fill", "fill"), ("edit", "edit"))
    raw = [(f"{label}, raw", kind, Calibrator()) for label, kind in kinds]
    for label, kind, judge in (*((label, kind, None) for label, kind in kinds), *raw):
        found = figures.ranking(kind, judge)
        for figure, interval in found.items():
            put_interval(flat, f"{name}.{label.replace(', ', '_')}.{figure}", interval)
        size = next((str(each.n) for each in found.values() if each is not None), "0")
        rows.append((label, size, *(interval_cell(each, 3) for each in found.values())))
    return Table(title, ("probabilities of", "n", "AUROC", "ECE", "Brier", "AURC"), tuple(rows))


def _thresholds(name: str, figures: SelectivityFigures, calibrator: Calibrator, flat: dict[str, Value]) -> Table:
    of_kinds = {kind: calibrator.thresholds(kind) for kind in KINDS}
    named = [(each, {kind: of_kinds[kind][each] for kind in KINDS}) for each in THRESHOLDS]
    rows = []
    for label, values in [*named, *((f"{step:g}", dict.fromkeys(KINDS, step)) for step in STEPS)]:
        found = figures.threshold(values)
        key = f"{name}.at_{label}"
        flat |= {f"{key}.threshold_{kind}": value for kind, value in values.items()}
        flat[f"{key}.shown"] = found.shown
        for figure in _FIGURES:
            put_interval(flat, f"{key}.{figure}", getattr(found, figure))
        told = label if label.startswith("0") else f"{label} ({', '.join(f'{value:.3f}' for value in values.values())})"
        rows.append((told, str(found.shown), *(percent_cell(getattr(found, figure)) for figure in _FIGURES)))
    columns = ("threshold", "shown", "fewer", "lost", "accepted of shown", "characters kept")
    return Table(f"{name}: thresholds against showing everything", columns, tuple(rows))


def _filters(name: str, figures: SelectivityFigures, flat: dict[str, Value]) -> Table:
    rows = []
    for each in figures.filters():
        flat[f"{name}.filter.{each.name}.dropped"] = each.dropped
        flat[f"{name}.filter.{each.name}.accepted"] = each.accepted
        put_interval(flat, f"{name}.filter.{each.name}.cost", each.of)
        rows.append((each.name, str(each.dropped), str(each.accepted), percent_cell(each.of)))
    columns = ("filter", "dropped", "of these, would be accepted", "share of all accepted")
    return Table(f"{name}: hard filters", columns, tuple(rows))
