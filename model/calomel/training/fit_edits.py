"""Fits how likely a proposed edit is right: logistic regression with an L2 penalty, by Newton's method.

Lines come from `calomel bench edits --held-out --signals FILE`, of stories that the model may have seen in training but
that no bench reports. Judged by cross-validation: all lines of one file's package stay on one side, since edits of one
package are alike.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calomel.selectivity.edit_calibrator import CALIBRATOR_FILE, EditCalibrator, EditSignals

Numbers = NDArray[np.float64]

FOLDS: Final = 5
# The squared weights count so much beside the summed log-loss; the bias does not. Features are of size one.
PENALTY: Final = 1.0
_STEPS: Final = 50
_BINS: Final = 10
# Where packages lie in Debian: `gocode/src/HOST/OWNER/NAME`, `registry/NAME`.
_DEPTHS: Final = {"gocode": 5, "registry": 2}
_ANYWHERE: Final = frozenset(
    {"src", "lib", "source", "examples", "dist", "test", "tests", "package", "packages", "build", "esm"}
)
# Both answers, in at least two groups, or there is nothing to fit.
_FEWEST: Final = 20


class SignalsError(Exception):
    """A file of signals cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Line:
    """One candidate that the gate saw.

    Attributes:
        signals: what was known of it.
        right: whether it was the right edit.
        group: what it shares with lines that must not be split from it.
    """

    signals: EditSignals
    right: bool
    group: str


@dataclass(frozen=True, slots=True)
class Quality:
    """Of probabilities, beside what came true: expected calibration error, area under the ROC curve, mean log-loss."""

    ece: float
    auroc: float
    log_loss: float


@dataclass(frozen=True, slots=True)
class Fit:
    """A calibrator and what it is worth.

    Attributes:
        calibrator: fitted to all lines.
        lines: their number.
        right: how many of them were right.
        before: of the bare likelihood ratio.
        after: of probabilities that each line got from a fit to other groups.
    """

    calibrator: EditCalibrator
    lines: int
    right: int
    before: Quality
    after: Quality

    def to_text(self) -> str:
        """For people."""
        rows = [f"{self.lines} candidates, {self.right} of them right", "        ECE     AUROC   log-loss"]
        for name, quality in (("before", self.before), ("after", self.after)):
            rows.append(f"{name:7} {quality.ece:.4f}  {quality.auroc:.4f}  {quality.log_loss:.4f}")
        rows += [f"{name:24} {weight:+.3f}" for name, weight in self.calibrator.weights]
        return "\n".join([*rows, f"{'bias':24} {self.calibrator.bias:+.3f}"])

    def write(self, path: Path) -> None:
        """Write what `EditCalibrator.from_folder` reads; other fits in the file stay."""
        known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        known["edit"] = self.calibrator.to_dict()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


def read_lines(path: Path) -> tuple[Line, ...]:
    """Signals as the bench writes them. Raises SignalsError."""
    names = [each.name for each in fields(EditSignals)]
    try:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return tuple(
            Line(
                EditSignals(**{name: record[name] for name in names if name in record}),
                bool(record["right"]),
                _group(record),
            )
            for record in records
        )
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        raise SignalsError(f"{path} holds no signals: {error!r}") from error


def fit(lines: Sequence[Line], *, penalty: float = PENALTY, folds: int = FOLDS) -> Fit:
    """Fit to all lines, and judge it by folds of whole groups. Raises SignalsError for too few lines."""
    truth = np.asarray([line.right for line in lines], dtype=np.float64)
    groups = sorted({line.group for line in lines}, key=_digest)
    if len(lines) < _FEWEST or len(groups) < 2 or not 0 < truth.sum() < len(lines):  # noqa: PLR2004
        raise SignalsError(f"{len(lines)} candidates, {int(truth.sum())} right, {len(groups)} groups: too few to fit")
    fold_of = {group: number % folds for number, group in enumerate(groups)}
    fold = np.asarray([fold_of[line.group] for line in lines])
    unfitted = EditCalibrator()
    before = np.asarray([unfitted.probability(line.signals) for line in lines])
    after = np.zeros(len(lines))
    for number in sorted(set(fold.tolist())):
        learned = fitted([line for line, other in zip(lines, fold, strict=True) if other != number], penalty)
        for at in np.flatnonzero(fold == number).tolist():
            after[at] = learned.probability(lines[at].signals)
    return Fit(
        fitted(lines, penalty), len(lines), int(truth.sum()), quality_of(before, truth), quality_of(after, truth)
    )


def fitted(lines: Sequence[Line], penalty: float = PENALTY) -> EditCalibrator:
    """The weights that make what came true most likely, less the penalty."""
    found = [line.signals.features() for line in lines]
    names = sorted({name for features in found for name in features})
    inputs = np.asarray([[*(features.get(name, 0.0) for name in names), 1.0] for features in found])
    truth = np.asarray([line.right for line in lines], dtype=np.float64)
    weights = _newton(inputs, truth, np.asarray([penalty] * len(names) + [1e-6]))
    *rest, bias = (round(float(weight), 6) for weight in weights)
    return EditCalibrator(tuple(zip(names, rest, strict=True)), bias)


def quality_of(probabilities: Numbers, truth: Numbers) -> Quality:
    """ECE in ten bins of equal width, AUROC with ties counted half, and mean log-loss."""
    bins = np.minimum((probabilities * _BINS).astype(int), _BINS - 1)
    ece = 0.0
    for number in range(_BINS):
        inside = bins == number
        if inside.any():
            ece += abs(float(probabilities[inside].mean() - truth[inside].mean())) * float(inside.mean())
    clipped = np.clip(probabilities, 1e-12, 1 - 1e-12)
    loss = -(truth * np.log(clipped) + (1 - truth) * np.log(1 - clipped)).mean()
    return Quality(ece, _auroc(probabilities, truth), float(loss))


def calibrator_path(out: Path) -> Path:
    """`out`, or the calibrator's file in it when it is a folder."""
    return out / CALIBRATOR_FILE if out.is_dir() else out


def _newton(inputs: Numbers, truth: Numbers, penalty: Numbers) -> Numbers:
    """Minimise the penalised log-loss, which is convex: halve a step that does not lower it."""
    weights = np.zeros(inputs.shape[1])
    loss = _loss(inputs, truth, penalty, weights)
    for _ in range(_STEPS):
        predicted = _sigmoid(inputs @ weights)
        gradient = inputs.T @ (predicted - truth) + penalty * weights
        curvature = (inputs * (predicted * (1 - predicted))[:, None]).T @ inputs + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-6:  # noqa: PLR2004
            lower = _loss(inputs, truth, penalty, weights - size * step)
            if lower <= loss:
                break
            size /= 2
        else:
            break
        weights, gained, loss = weights - size * step, loss - lower, lower
        if gained < 1e-9 * max(1.0, loss):
            break
    return weights


def _loss(inputs: Numbers, truth: Numbers, penalty: Numbers, weights: Numbers) -> float:
    scores = inputs @ weights
    return float((np.logaddexp(0.0, scores) - truth * scores).sum() + (penalty * weights**2).sum() / 2)


def _sigmoid(scores: Numbers) -> Numbers:
    return np.exp(-np.logaddexp(0.0, -scores))


def _auroc(probabilities: Numbers, truth: Numbers) -> float:
    """Chance that a right one has the higher probability than a wrong one; NaN where one of them is missing."""
    right, wrong = probabilities[truth > 0], probabilities[truth == 0]
    if not len(right) or not len(wrong):
        return math.nan
    ordered = np.sort(wrong)
    below = np.searchsorted(ordered, right, side="left") + np.searchsorted(ordered, right, side="right")
    return float(below.mean() / 2 / len(wrong))


def _group(record: Mapping[str, Any]) -> str:
    """The package, as far as a path tells it; the path itself where it begins as many do."""
    parts = str(record.get("path", "")).split("/")
    for name, depth in _DEPTHS.items():
        if name in parts:
            return "/".join(parts[: parts.index(name) + depth])
    if len(parts) == 1 or parts[0] in _ANYWHERE:
        return str(record.get("path") or record["story"])
    return parts[0]


def _digest(group: str) -> str:
    return hashlib.sha256(group.encode()).hexdigest()
