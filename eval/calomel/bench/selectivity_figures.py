"""What a filter is worth on samples that it was not fitted to: ranking, calibration, and what each threshold costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calomel.bench.stats import Interval, percentile, wilson
from calomel.replay.metrics.calibration import brier, ece
from calomel.replay.metrics.selectivity import Floats, aurc, auroc
from calomel.replay.resampling import Items, Resampling
from calomel.selectivity.calibrator import Calibrator
from calomel.selectivity.sample import Sample

FIGURES: Mapping[str, Callable[[Floats, Floats], float | None]] = {
    "auroc": auroc,
    "ece": ece,
    "brier": brier,
    "aurc": aurc,
}


@dataclass(frozen=True, slots=True)
class Threshold:
    """What one threshold does, against showing each question's surest candidate whatever it is.

    Attributes:
        threshold: the least probability of what is shown.
        shown: suggestions.
        fewer: share of all that is not shown.
        lost: share of what would have been accepted that is not shown.
        acceptance: share of what is shown that is accepted.
        characters: share of the characters that everything would have saved.
    """

    threshold: float
    shown: int
    fewer: Interval | None
    lost: Interval | None
    acceptance: Interval | None
    characters: Interval | None


@dataclass(frozen=True, slots=True)
class FilterCost:
    """What one hard filter drops: how many candidates, and how many of those that would have been accepted."""

    name: str
    dropped: int
    accepted: int
    of: Interval | None


class SelectivityFigures:
    """Figures of one set of samples.

    Args:
        samples: of logs; those that nobody could have decided about are only counted.
        calibrator: to be judged.
        seed: of the bootstrap over minutes of logs.
    """

    def __init__(self, samples: Sequence[Sample], calibrator: Calibrator, seed: int = 0) -> None:
        self.samples = [sample for sample in samples if sample.decided]
        self.undecided = len(samples) - len(self.samples)
        self._calibrator = calibrator
        self.probabilities = [calibrator.probability(sample.subject) for sample in self.samples]
        self.judged_ms = [sample.judged_ms for sample in samples if sample.judged_ms]
        # What happens within one minute of one log hangs together.
        self._clusters = [(_log(sample), int(sample.time // 60)) for sample in self.samples]
        self._seed = seed

    def ranking(self, kind: str | None = None, calibrator: Calibrator | None = None) -> dict[str, Interval | None]:
        """AUROC, ECE, Brier score and AURC over what no filter drops; of one kind, or of a rival calibrator."""
        chosen = [
            number for number, sample in enumerate(self.samples) if not sample.filters and kind in {None, sample.kind}
        ]
        judge = calibrator or self._calibrator
        scores = np.asarray([judge.probability(each.subject) for each in self.samples])
        taken = np.asarray([float(sample.accepted) for sample in self.samples])
        resampling = Resampling(self._clusters, self._seed)
        found: dict[str, Interval | None] = {}
        for name, figure in FIGURES.items():

            def statistic(items: Items, figure: Callable[[Floats, Floats], float | None] = figure) -> float | None:
                return figure(scores[items], taken[items])

            found[name] = resampling.statistic(chosen, statistic)
        return found

    def threshold(self, threshold: float, kind: str | None = None) -> Threshold:
        """One threshold, over all questions or over those of one kind."""
        picks = [pick for pick in self._picks if kind in {None, pick.kind}]
        resampling = Resampling([pick.cluster for pick in picks], self._seed)
        everything = [float(pick.everything.accepted) for pick in picks]
        shown = [float(pick.is_shown(threshold)) for pick in picks]
        taken = [
            float(pick.is_shown(threshold) and pick.passing is not None and pick.passing.accepted) for pick in picks
        ]
        saved = [
            float(pick.passing.saved_characters) if each and pick.passing is not None else 0.0
            for pick, each in zip(picks, taken, strict=True)
        ]
        all_saved = [float(pick.everything.saved_characters if pick.everything.accepted else 0) for pick in picks]
        return Threshold(
            threshold,
            int(sum(shown)),
            resampling.ratio([1 - each for each in shown], [1.0] * len(picks)),
            resampling.ratio([every - each for every, each in zip(everything, taken, strict=True)], everything),
            resampling.share(taken, shown),
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

    def surest(self, count: int) -> tuple[int, int]:
        """Of the `count` surest suggestions that pass every filter: how many are accepted, and characters saved."""
        passing = sorted((pick for pick in self._picks if pick.passing), key=lambda pick: -pick.probability)[:count]
        taken = [pick.passing for pick in passing if pick.passing is not None and pick.passing.accepted]
        return len(taken), sum(sample.saved_characters for sample in taken)

    @property
    def accepted(self) -> int:
        """Questions whose surest candidate would have been accepted, filters aside."""
        return sum(pick.everything.accepted for pick in self._picks)

    @property
    def questions(self) -> int:
        """Questions with a candidate that somebody could have decided about."""
        return len(self._picks)

    def time(self, percent: float) -> float | None:
        """Milliseconds that filters and calibrator took for a candidate, all filters asked."""
        return percentile(self.judged_ms, percent)

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
    """Of one question: its surest candidate, the surest that passes every filter, and how sure that is."""

    everything: Sample
    passing: Sample | None
    probability: float
    cluster: tuple[str, int]

    @property
    def kind(self) -> str:
        return self.everything.kind

    def is_shown(self, threshold: float) -> bool:
        return self.passing is not None and self.probability >= threshold


def _log(sample: Sample) -> str:
    """A question is named by its log, the log's entry and the kind."""
    return sample.question.rpartition(":")[0].rpartition(":")[0]


def halves(samples: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Of each log what the person did first, and what later."""
    logs: dict[str, list[Sample]] = {}
    for sample in samples:
        logs.setdefault(_log(sample), []).append(sample)
    first: list[Sample] = []
    second: list[Sample] = []
    for found in logs.values():
        ordered = sorted(found, key=lambda sample: sample.time)
        middle = ordered[len(ordered) // 2].time
        first += [sample for sample in ordered if sample.time < middle]
        second += [sample for sample in ordered if sample.time >= middle]
    return first, second
