"""Fits the probability that a suggestion is accepted, evaluates the fit, and finds thresholds that keep a promise.

The fit is a logistic regression with an L2 penalty. It starts from an existing calibrator, or from nothing: the penalty
pulls the weights towards the existing ones, and leaves scale and offset of the old sum free. So a few hundred outcomes
of one person correct the shipped fit, and a few thousand from many packages make one. The strength of the penalty is
chosen by cross-validation; all samples of one group (a package, a day) stay on one side, since suggestions of one group
are alike.

The names of thresholds are promises about suggestions of one kind, with different values for each kind and model: how
many of each kind there are in a set of samples is chance.

* `balanced` shows as little as it can while it loses at most one in twenty of those that would have been accepted.
  (T-Bank's filter for code completion was built with the same bound.)
* `eager` loses at most one in a hundred.
* `quiet` shows what is more likely accepted than not.

Needs scipy, from the extras `bench` and `train`; applying a calibrator needs nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import beta

from calomel.selectivity.calibrator import HOPELESS, Calibrator, KindCalibrator, features
from calomel.selectivity.sample import Sample, auroc, ece, reliability

Numbers = NDArray[np.float64]

FOLDS: Final = 5
# Weight of squared differences of weights relative to the summed log-loss. Features are of about size one.
PENALTIES: Final = (0.3, 1.0, 3.0, 10.0, 30.0)
# For scale and offset of the existing sum.
_LIGHT: Final = 0.1
# For the scale when few outcomes correct a whole calibrator: it takes a few hundred to move it; the offset moves at
# once.
_HEAVY: Final = 100.0
# Fewer accepted or not accepted ones prove nothing about either.
FEWEST: Final = 20
# If only two numbers, scale and offset, are fitted.
FEWEST_TOGETHER: Final = 8
FEWEST_GROUPS: Final = 3
BALANCED_LOSS: Final = 0.05
EAGER_LOSS: Final = 0.01
QUIET: Final = 0.5


class TooFewError(Exception):
    """There are too few samples to fit; the message says how many there are, and how many are needed."""


class Quality(NamedTuple):
    """Of probabilities, given outcomes: expected calibration error, area under the ROC curve, mean log-loss."""

    ece: float
    auroc: float
    log_loss: float


@dataclass(frozen=True, slots=True)
class Fit:
    """A calibrator of one kind, and its quality.

    Attributes:
        calibrator: fitted to all samples; its report has their number, and the best penalty.
        before: quality of the calibrator that it started from.
        after: quality of the probabilities that each sample got from a fit to other groups.
        probabilities: these, in the order of the samples.
    """

    calibrator: KindCalibrator
    before: Quality
    after: Quality
    probabilities: tuple[float, ...] = field(repr=False)


def usable(samples: Sequence[Sample], kind: str) -> list[Sample]:
    """The samples of a kind that a person could have decided about, and that no filter drops."""
    return [sample for sample in samples if sample.kind == kind and sample.decided and not sample.filters]


def fit(samples: Sequence[Sample], start: KindCalibrator | None = None, penalties: Sequence[float] = PENALTIES) -> Fit:
    """Fit to samples of one kind, and evaluate it with folds of whole groups.

    Args:
        samples: from `usable`.
        start: what to correct; None for a fit from nothing.
        penalties: to choose from.

    Raises:
        TooFewError: there are too few samples of one outcome, or too few groups.
    """
    truth = np.asarray([sample.accepted for sample in samples], dtype=np.float64)
    groups = sorted({sample.group for sample in samples}, key=lambda group: hashlib.sha256(group.encode()).digest())
    check_enough(int(truth.sum()), len(samples), len(groups))
    base = start or KindCalibrator({}, 0.0)
    names, inputs = _table(samples, base)
    fold_of = {group: number % FOLDS for number, group in enumerate(groups)}
    fold = np.asarray([fold_of[sample.group] for sample in samples])

    def solved(rows: NDArray[np.bool_], penalty: float) -> Numbers:
        light = np.asarray([penalty] * len(names) + [_LIGHT, 1e-6])
        return solve(inputs[rows], truth[rows], light, inputs[rows, -2])

    tried: dict[float, Numbers] = {}
    for penalty in penalties:
        tried[penalty] = np.zeros(len(samples))
        for number in sorted(set(fold.tolist())):
            held = fold == number
            tried[penalty][held] = expit(inputs[held, -2] + inputs[held] @ solved(~held, penalty))
    best = min(penalties, key=lambda penalty: quality_of(tried[penalty], truth).log_loss)
    after = quality_of(tried[best], truth)
    report = {"groups": len(groups), "penalty": best, **_report(samples, tried[best], truth, after)}
    made = _moved(base, names, solved(fold >= 0, best), report)
    thresholds = named_thresholds(samples, tried[best].tolist())
    # Hopeless makers are not asked, so nothing new is learned about them. A completion has no other maker to ask.
    unheard = base.hopeless - {sample.maker for sample in samples}
    hopeless = hopeless_makers([sample for sample in samples if sample.kind == "edit"])
    # Abandoned texts are in no log: a fit to one must not raise the floor that excluded them.
    floors = {**base.floors, **named_floors(samples, tried[best].tolist(), thresholds)}
    floors = {name: min(floor, base.floors.get(name, floor)) for name, floor in floors.items()}
    made = replace(made, hopeless=hopeless | unheard, thresholds=thresholds, floors=floors)
    before = np.asarray([base.probability(sample) for sample in samples])
    return Fit(made, quality_of(before, truth), after, tuple(tried[best].tolist()))


def check_enough(accepted: int, all_of_them: int, groups: int, fewest: int = FEWEST) -> None:
    """Raises TooFewError with what is missing if there are fewer than `fewest` of either outcome."""
    missing = []
    if accepted < fewest:
        lacking = fewest - accepted
        missing.append(f"{lacking} more accepted suggestion{'s' * (lacking != 1)}")
    if all_of_them - accepted < fewest:
        missing.append(f"{fewest - (all_of_them - accepted)} more you did not accept")
    if groups < FEWEST_GROUPS:
        lacking = FEWEST_GROUPS - groups
        missing.append(f"{lacking} more day{'s' * (lacking != 1)} (or package{'s' * (lacking != 1)})")
    if missing:
        raise TooFewError(
            f"{all_of_them} suggestion{'s' * (all_of_them != 1)} from {groups} day{'s' * (groups != 1)} "
            f"(or package{'s' * (groups != 1)}), {accepted} accepted: too few. "
            f"A fit needs {', '.join(missing)}"
        )


def hopeless_makers(samples: Sequence[Sample]) -> frozenset[str]:
    """Makers that add next to nothing: almost none of their proposals was accepted where no other maker's was."""
    taken: dict[str, set[str]] = {}
    for sample in samples:
        if sample.accepted:
            taken.setdefault(sample.question, set()).add(sample.maker)
    proposed = Counter(sample.maker for sample in samples)
    added = Counter(sample.maker for sample in samples if sample.accepted and taken[sample.question] == {sample.maker})
    return frozenset(maker for maker, count in proposed.items() if upper_bound(added[maker], count, 0.95) < HOPELESS)


def quality_of(probabilities: Numbers, truth: Numbers) -> Quality:
    """ECE in ten bins of equal width, AUROC with ties counted half (NaN for a single outcome), and mean log-loss."""
    clipped = np.clip(probabilities, 1e-12, 1 - 1e-12)
    loss = -(truth * np.log(clipped) + (1 - truth) * np.log(1 - clipped)).mean()
    ranked = auroc(probabilities, truth)
    return Quality(ece(probabilities, truth) or 0.0, math.nan if ranked is None else ranked, float(loss))


def _table(samples: Sequence[Sample], base: KindCalibrator) -> tuple[tuple[str, ...], Numbers]:
    """Samples as rows: a column per feature, by name, then the existing sum, then ones."""
    found = [features(sample) for sample in samples]
    names = tuple(sorted({name for each in found for name in each}))
    inputs = np.asarray([[*(each.get(name, 0.0) for name in names), base.score(each), 1.0] for each in found])
    return names, inputs


def _moved(base: KindCalibrator, names: Sequence[str], solved: Numbers, report: Mapping[str, Any]) -> KindCalibrator:
    """A calibrator with the differences of weights, scale and bias that `solve` found."""
    *differences, scale, bias = solved.tolist()
    weights = {name: (1 + scale) * weight for name, weight in base.weights.items()}
    for name, difference in zip(names, differences, strict=True):
        weights[name] = weights.get(name, 0.0) + difference
    rounded = {name: round(weight, 5) for name, weight in weights.items() if round(weight, 5)}
    return replace(base, weights=rounded, bias=round((1 + scale) * base.bias + bias, 5), report=report)


def _report(samples: Sequence[Sample], probabilities: Numbers, truth: Numbers, quality: Quality) -> dict[str, Any]:
    makers = Counter(sample.maker for sample in samples)
    taken = Counter(sample.maker for sample in samples if sample.accepted)
    return {
        "samples": len(samples),
        "accepted": int(truth.sum()),
        "ece": round(quality.ece, 4),
        "auroc": None if math.isnan(quality.auroc) else round(quality.auroc, 4),
        "log_loss": round(quality.log_loss, 4),
        "reliability": [
            {"count": each.size, "probability": round(each.confidence, 4), "accepted": round(each.taken, 4)}
            for each in reliability(probabilities, truth)
        ],
        "makers": {maker: {"samples": count, "accepted": taken[maker]} for maker, count in sorted(makers.items())},
    }


def solve(inputs: Numbers, truth: Numbers, penalty: Numbers, offset: Numbers) -> Numbers:
    """Minimise the penalised log-loss, which is convex: [rows, columns] inputs, a penalty per column."""

    def loss(weights: Numbers) -> float:
        scores = offset + inputs @ weights
        return float((np.logaddexp(0.0, scores) - truth * scores).sum() + (penalty * weights**2).sum() / 2)

    def slope(weights: Numbers) -> Numbers:
        wrong: Numbers = expit(offset + inputs @ weights) - truth
        return inputs.T @ wrong + penalty * weights

    def curvature(weights: Numbers) -> Numbers:
        predicted: Numbers = expit(offset + inputs @ weights)
        return (inputs * (predicted * (1 - predicted))[:, None]).T @ inputs + np.diag(penalty)

    start = np.zeros(inputs.shape[1])
    found = minimize(loss, start, jac=slope, hess=curvature, method="trust-exact", options={"gtol": 1e-5})
    return np.asarray(found.x)


def corrected_together(samples: Sequence[Sample], shipped: Calibrator) -> Calibrator:
    """The shipped calibrator with one scale and one offset for all its kinds, thresholds too. Raises TooFewError."""
    truth = np.asarray([sample.accepted for sample in samples], dtype=np.float64)
    check_enough(int(truth.sum()), len(samples), len({sample.group for sample in samples}), FEWEST_TOGETHER)
    sums = logit(np.clip([shipped.probability(sample) for sample in samples], 1e-9, 1 - 1e-9))
    inputs = np.stack((sums, np.ones_like(sums)), axis=1)
    solved = solve(inputs, truth, np.asarray([_HEAVY, 1e-6]), sums)
    scale, offset = solved.tolist()
    report = {"samples": len(samples), "accepted": int(truth.sum()), "scale": 1 + scale, "offset": offset}
    kinds = {}
    for kind, fitted in shipped.kinds.items():
        made = _moved(fitted, (), solved, report)
        own = [sample for sample in samples if sample.kind == kind]
        named = named_thresholds(own, [made.probability(sample) for sample in own])
        kinds[kind] = replace(made, thresholds=named or fitted.thresholds)
    return Calibrator(kinds, shipped.model)


def named_thresholds(samples: Sequence[Sample], probabilities: Sequence[float]) -> dict[str, float]:
    """From samples and the probabilities of a calibrator not fitted to them; empty if none was accepted."""
    best = surest(samples, probabilities)
    taken = sorted(probability for sample, probability in best if sample.accepted)
    if not taken:
        return {}
    balanced = losing(taken, BALANCED_LOSS)
    return {"quiet": max(balanced, QUIET), "balanced": balanced, "eager": min(balanced, losing(taken, EAGER_LOSS))}


def named_floors(
    samples: Sequence[Sample], probabilities: Sequence[float], thresholds: Mapping[str, float]
) -> dict[str, float]:
    """For each threshold, a floor that abandons at most one in a hundred of the model's own texts shown and accepted.

    In nats: the sum of a text's tokens never grows, so that a text below it need not be finished. None if fewer than
    `FEWEST` would be shown and accepted.
    """
    taken = [
        (sample.number("mean_log_prob") * sample.count("tokens"), probability)
        for sample, probability in zip(samples, probabilities, strict=True)
        if (sample.kind, sample.maker) == ("fill", "canvas") and sample.outcome != "rejected"
    ]
    shown = {name: [total for total, each in taken if each >= least] for name, least in thresholds.items()}
    return {name: losing(sorted(totals), EAGER_LOSS) for name, totals in shown.items() if len(totals) >= FEWEST}


def losing(taken: Sequence[float], share: float) -> float:
    """The highest threshold that loses at most this share of the accepted ones.

    Args:
        taken: probabilities of the accepted ones, ascending, at least one.
        share: 0 to 1.
    """
    # Rounded down, so that no more is lost.
    return math.floor(taken[int(share * len(taken))] * 1e3) / 1e3


def surest(samples: Sequence[Sample], probabilities: Sequence[float]) -> list[tuple[Sample, float]]:
    """The likeliest candidate of each question, which is the one that would be shown, in the order of questions."""
    found: dict[str, list[tuple[Sample, float]]] = defaultdict(list)
    for sample, probability in zip(samples, probabilities, strict=True):
        found[sample.question].append((sample, probability))
    return [max(candidates, key=lambda each: each[1]) for candidates in found.values()]


def upper_bound(successes: int, trials: int, confidence: float) -> float:
    """The one-sided upper bound for a share of Clopper and Pearson (1934), exact for any number."""
    return float(beta.ppf(confidence, successes + 1, trials - successes)) if successes < trials else 1.0
