"""Fits how likely a suggestion gets accepted: logistic regression with an L2 penalty, by Newton's method.

A fit starts from a calibrator that is there already, or from nothing: the penalty pulls the weights towards those, and
lets scale and offset of the old sum go free. So a few hundred outcomes of one person correct the shipped fit, and some
thousand of many packages make one. How much the weights may differ is chosen by cross-validation; all samples of one
group (a package, a day) stay on one side, since suggestions of one group are alike.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calomel.selectivity.calibrator import HOPELESS, Calibrator, KindCalibrator
from calomel.selectivity.features import OWN, features
from calomel.selectivity.risk import upper_bound
from calomel.selectivity.sample import Sample
from calomel.selectivity.thresholds import named_thresholds

Numbers = NDArray[np.float64]

FOLDS: Final = 5
# Squared differences of weights count so much beside the summed log-loss. Features are of about size one.
PENALTIES: Final = (0.3, 1.0, 3.0, 10.0, 30.0)
# Those of scale and offset of the sum that is there already.
_LIGHT: Final = 0.1
# Of the scale where few outcomes correct a whole calibrator: it moves when some hundred say so, the offset at once.
_HEAVY: Final = 100.0
_STEPS: Final = 60
BINS: Final = 10
# Fewer accepted or not accepted ones than that prove nothing about either.
FEWEST: Final = 20
# For two numbers, scale and offset, alone.
FEWEST_TOGETHER: Final = 8
FEWEST_GROUPS: Final = 3


class TooFewError(Exception):
    """There is not enough to fit; the message says what there is, and how many are needed."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Of probabilities, beside what came true: expected calibration error, area under the ROC curve, mean log-loss."""

    ece: float
    auroc: float
    log_loss: float


@dataclass(frozen=True, slots=True)
class Fit:
    """A calibrator of one kind, and what it is worth.

    Attributes:
        calibrator: fitted to all samples.
        samples: their number.
        accepted: how many of them were.
        groups: how many groups they came from.
        penalty: the best in cross-validation.
        before: of the calibrator that it started from.
        after: of probabilities that each sample got from a fit to other groups.
        probabilities: these, in the order of the samples.
    """

    calibrator: KindCalibrator
    samples: int
    accepted: int
    groups: int
    penalty: float
    before: Quality
    after: Quality
    probabilities: tuple[float, ...] = field(repr=False)


def usable(samples: Sequence[Sample], kind: str) -> list[Sample]:
    """Those of a kind that a person could have decided about, and that no filter drops."""
    return [sample for sample in samples if sample.kind == kind and sample.decided and not sample.filters]


def fit(samples: Sequence[Sample], start: KindCalibrator | None = None, penalties: Sequence[float] = PENALTIES) -> Fit:
    """Fit to samples of one kind, and judge it by folds of whole groups.

    Args:
        samples: what `usable` gives.
        start: what to correct; None for a fit from nothing.
        penalties: to choose from.

    Raises:
        TooFewError: of one outcome or of groups there are too few.
    """
    truth = np.asarray([sample.accepted for sample in samples], dtype=np.float64)
    groups = sorted({sample.group for sample in samples}, key=_digest)
    check_enough(int(truth.sum()), len(samples), len(groups))
    base = start or KindCalibrator({}, 0.0)
    table = _Table.of(samples, base)
    fold_of = {group: number % FOLDS for number, group in enumerate(groups)}
    fold = np.asarray([fold_of[sample.group] for sample in samples])
    tried: dict[float, Numbers] = {}
    for penalty in penalties:
        tried[penalty] = np.zeros(len(samples))
        for number in sorted(set(fold.tolist())):
            rest = fold != number
            solved = table.solve(truth, rest, penalty)
            tried[penalty][~rest] = table.predict(solved)[~rest]
    best = min(penalties, key=lambda penalty: quality_of(tried[penalty], truth).log_loss)
    weights, bias = table.weights(table.solve(truth, np.ones(len(samples), dtype=bool), best), base)
    before = np.asarray([base.probability(sample.subject) for sample in samples])
    after = quality_of(tried[best], truth)
    made = KindCalibrator(
        weights, bias, hopeless_makers(samples), _report(samples, tried[best], truth, after, len(groups), best)
    )
    return Fit(
        made, len(samples), int(truth.sum()), len(groups), best, quality_of(before, truth), after,
        tuple(tried[best].tolist()),
    )  # fmt: skip


def check_enough(accepted: int, all_of_them: int, groups: int, fewest: int = FEWEST) -> None:
    """Raises TooFewError with what is missing to `fewest` of either outcome."""
    missing = []
    if accepted < fewest:
        missing.append(f"{fewest - accepted} more accepted ones")
    if all_of_them - accepted < fewest:
        missing.append(f"{fewest - (all_of_them - accepted)} more that were not accepted")
    if groups < FEWEST_GROUPS:
        missing.append(f"{FEWEST_GROUPS - groups} more days or packages")
    if missing:
        raise TooFewError(
            f"{all_of_them} suggestions of {groups} days or packages, {accepted} of them accepted, are too few: "
            f"needed are {', '.join(missing)}"
        )


def hopeless_makers(samples: Sequence[Sample]) -> frozenset[str]:
    """Makers that add next to nothing: hardly any of their proposals was accepted where nobody else's was.

    The model's own makers are asked together or not at all, so they count as one.
    """
    taken: dict[str, set[str]] = {}
    for sample in samples:
        if sample.accepted:
            taken.setdefault(sample.question, set()).add(_family(sample))
    proposed = Counter(_family(sample) for sample in samples)
    added = Counter(
        _family(sample) for sample in samples if sample.accepted and taken[sample.question] == {_family(sample)}
    )
    hopeless = {family for family, count in proposed.items() if upper_bound(added[family], count, 0.95) < HOPELESS}
    return frozenset(sample.maker for sample in samples if _family(sample) in hopeless)


def _family(sample: Sample) -> str:
    return "own" if sample.maker in OWN else sample.maker


def quality_of(probabilities: Numbers, truth: Numbers) -> Quality:
    """ECE in ten bins of equal width, AUROC with ties counted half, and mean log-loss."""
    ece = sum(abs(each["probability"] - each["accepted"]) * each["count"] for each in reliability(probabilities, truth))
    clipped = np.clip(probabilities, 1e-12, 1 - 1e-12)
    loss = -(truth * np.log(clipped) + (1 - truth) * np.log(1 - clipped)).mean()
    return Quality(ece / max(1, len(truth)), auroc(probabilities, truth), float(loss))


def reliability(probabilities: Numbers, truth: Numbers) -> list[dict[str, float]]:
    """By tenths of the probability: how many, their mean probability, the share accepted; empty ones are left out."""
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    found = []
    for number in sorted(set(bins.tolist())):
        inside = bins == number
        found.append(
            {
                "count": int(inside.sum()),
                "probability": round(float(probabilities[inside].mean()), 4),
                "accepted": round(float(truth[inside].mean()), 4),
            }
        )
    return found


def auroc(probabilities: Numbers, truth: Numbers) -> float:
    """Chance that an accepted one has the higher probability; NaN where one of both is missing."""
    right, wrong = probabilities[truth > 0], probabilities[truth == 0]
    if not len(right) or not len(wrong):
        return math.nan
    ordered = np.sort(wrong)
    below = np.searchsorted(ordered, right, side="left") + np.searchsorted(ordered, right, side="right")
    return float(below.mean() / 2 / len(wrong))


@dataclass(frozen=True, slots=True)
class _Table:
    """Samples as numbers: a column for each feature, then the sum that is there already, then ones."""

    names: tuple[str, ...]
    inputs: Numbers
    offset: Numbers

    @classmethod
    def of(cls, samples: Sequence[Sample], base: KindCalibrator) -> _Table:
        found = [features(sample.subject) for sample in samples]
        names = tuple(sorted({name for each in found for name in each}))
        place = {name: at for at, name in enumerate(names)}
        inputs = np.zeros((len(samples), len(names) + 2))
        offset = np.zeros(len(samples))
        for row, each in enumerate(found):
            for name, value in each.items():
                inputs[row, place[name]] = value
            offset[row] = base.bias + sum(base.weights.get(name, 0.0) * value for name, value in each.items())
        inputs[:, -2] = offset
        inputs[:, -1] = 1.0
        return cls(names, inputs, offset)

    def solve(self, truth: Numbers, chosen: NDArray[np.bool_], penalty: float) -> Numbers:
        """The differences of weights, of the scale and of the bias that fit the chosen rows best."""
        light = np.asarray([penalty] * len(self.names) + [_LIGHT, 1e-6])
        return _newton(self.inputs[chosen], truth[chosen], light, self.offset[chosen])

    def predict(self, solved: Numbers) -> Numbers:
        return _sigmoid(self.offset + self.inputs @ solved)

    def weights(self, solved: Numbers, base: KindCalibrator) -> tuple[dict[str, float], float]:
        """The same as weights of a calibrator."""
        scale = 1.0 + float(solved[-2])
        weights = {name: scale * weight for name, weight in base.weights.items()}
        for name, difference in zip(self.names, solved[:-2].tolist(), strict=True):
            weights[name] = weights.get(name, 0.0) + difference
        rounded = {name: round(weight, 5) for name, weight in weights.items() if round(weight, 5)}
        return rounded, round(scale * base.bias + float(solved[-1]), 5)


def _report(
    samples: Sequence[Sample], probabilities: Numbers, truth: Numbers, quality: Quality, groups: int, penalty: float
) -> Mapping[str, Any]:
    makers = Counter(sample.maker for sample in samples)
    taken = Counter(sample.maker for sample in samples if sample.accepted)
    return {
        "samples": len(samples),
        "accepted": int(truth.sum()),
        "groups": groups,
        "penalty": penalty,
        "ece": round(quality.ece, 4),
        "auroc": None if math.isnan(quality.auroc) else round(quality.auroc, 4),
        "log_loss": round(quality.log_loss, 4),
        "reliability": reliability(probabilities, truth),
        "makers": {maker: {"samples": count, "accepted": taken[maker]} for maker, count in sorted(makers.items())},
    }


def _newton(inputs: Numbers, truth: Numbers, penalty: Numbers, offset: Numbers) -> Numbers:
    """Minimise the penalised log-loss, which is convex: halve a step that does not lower it."""
    weights = np.zeros(inputs.shape[1])
    loss = _loss(inputs, truth, penalty, offset, weights)
    for _ in range(_STEPS):
        predicted = _sigmoid(offset + inputs @ weights)
        gradient = inputs.T @ (predicted - truth) + penalty * weights
        curvature = (inputs * (predicted * (1 - predicted))[:, None]).T @ inputs + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-6:  # noqa: PLR2004
            lower = _loss(inputs, truth, penalty, offset, weights - size * step)
            if lower <= loss:
                break
            size /= 2
        else:
            break
        weights, gained, loss = weights - size * step, loss - lower, lower
        if gained < 1e-9 * max(1.0, loss):
            break
    return weights


def _loss(inputs: Numbers, truth: Numbers, penalty: Numbers, offset: Numbers, weights: Numbers) -> float:
    scores = offset + inputs @ weights
    return float((np.logaddexp(0.0, scores) - truth * scores).sum() + (penalty * weights**2).sum() / 2)


def _sigmoid(scores: Numbers) -> Numbers:
    return np.exp(-np.logaddexp(0.0, -scores))


def _digest(group: str) -> str:
    return hashlib.sha256(group.encode()).hexdigest()


def personal(samples: Sequence[Sample], shipped: Calibrator) -> Calibrator:
    """A person's own calibrator, from the shipped one and the person's outcomes.

    Kinds with too few outcomes for a fit of their own share one correction of scale and offset, if they have enough
    together; otherwise they stay as they are.

    Raises:
        TooFewError: nothing could be fitted.
    """
    fitted: dict[str, KindCalibrator] = {}
    left: list[Sample] = []
    for kind in shipped.kinds:
        found = usable(samples, kind)
        try:
            fitted[kind] = fit(found, shipped.kinds[kind]).calibrator
        except TooFewError:
            left += found
    rest = Calibrator({kind: each for kind, each in shipped.kinds.items() if kind not in fitted})
    try:
        fitted |= corrected_together(left, rest).kinds
    except TooFewError:
        if not fitted:
            raise
    return with_thresholds(Calibrator({**shipped.kinds, **fitted}, shipped.thresholds, shipped.model), samples)


def with_thresholds(calibrator: Calibrator, samples: Sequence[Sample]) -> Calibrator:
    """The same with names of thresholds that keep their promises on these samples."""
    chosen = [sample for kind in calibrator.kinds for sample in usable(samples, kind)]
    named = named_thresholds(chosen, [calibrator.probability(sample.subject) for sample in chosen])
    return replace(calibrator, thresholds=named or calibrator.thresholds)


def corrected_together(samples: Sequence[Sample], shipped: Calibrator) -> Calibrator:
    """The shipped calibrator with one scale and one offset for all its kinds. Raises TooFewError."""
    truth = np.asarray([sample.accepted for sample in samples], dtype=np.float64)
    check_enough(int(truth.sum()), len(samples), len({sample.group for sample in samples}), FEWEST_TOGETHER)
    sums = np.asarray([_logit(shipped.probability(sample.subject)) for sample in samples])
    inputs = np.stack((sums, np.ones_like(sums)), axis=1)
    scale, offset = _newton(inputs, truth, np.asarray([_HEAVY, 1e-6]), sums).tolist()
    kinds = {
        kind: KindCalibrator(
            {name: (1 + scale) * weight for name, weight in fitted.weights.items()},
            (1 + scale) * fitted.bias + offset,
            fitted.hopeless,
            {"samples": len(samples), "accepted": int(truth.sum()), "scale": 1 + scale, "offset": offset},
        )
        for kind, fitted in shipped.kinds.items()
    }
    return Calibrator(kinds, shipped.thresholds, shipped.model)


def _logit(probability: float) -> float:
    kept = min(max(probability, 1e-9), 1 - 1e-9)
    return math.log(kept / (1 - kept))
