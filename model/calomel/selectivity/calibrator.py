"""How likely a suggestion gets accepted: a logistic regression for each kind, fitted for one checkpoint.

A model's own numbers rank, but are no probabilities. And a weak model finds its own words likelier than a right draft,
so who proposed is a signal of its own. The fitted numbers stand in `calibrator.json` beside the weights; a user's own
fit, made by `calomel calibrate`, takes their place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from calomel.selectivity.features import Subject, features

CALIBRATOR_FILE: Final = "calibrator.json"
# A maker is hopeless when, with 95 % confidence, less than this share of what it proposes adds an accepted one.
HOPELESS: Final = 0.05
# Grows when an older reader would misunderstand a file.
FORMAT: Final = 2


class CalibratorError(ValueError):
    """A file is no calibrator; the message names it."""


@dataclass(frozen=True, slots=True)
class KindCalibrator:
    """Weights by feature name, and a bias; and of the data that they were fitted to, what they are worth.

    Attributes:
        weights: by name of the feature; one that is not named weighs nothing.
        bias: added to the sum.
        hopeless: makers of whose proposals next to none were accepted: nobody need ask them.
        report: figures of the fit, for people: counts, ECE, AUROC, reliability.
    """

    weights: Mapping[str, float]
    bias: float
    hopeless: frozenset[str] = frozenset()
    report: Mapping[str, Any] = field(default_factory=dict)

    def probability(self, subject: Subject) -> float:
        """Of being accepted, 0 to 1."""
        weights = self.weights
        sums = self.bias + sum(weights.get(name, 0.0) * value for name, value in features(subject).items())
        # Few examples say what the few right ones of a hopeless maker have in common, and each has many features.
        return sigmoid(sums) * (HOPELESS if subject.maker in self.hopeless else 1.0)

    def to_dict(self) -> dict[str, Any]:
        """What stands in the file."""
        return {
            "bias": self.bias,
            "hopeless": sorted(self.hopeless),
            "weights": dict(sorted(self.weights.items())),
            "report": dict(self.report),
        }


@dataclass(frozen=True, slots=True)
class Calibrator:
    """One for each kind that was fitted.

    Attributes:
        kinds: by `fill` and `edit`.
        thresholds: what `quiet`, `balanced` and `eager` come to, as `calomel.selectivity.thresholds` says.
        model: short hash of the weights that it was fitted for; empty where it lies beside them.
    """

    kinds: Mapping[str, KindCalibrator] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    model: str = ""

    def probability(self, subject: Subject) -> float:
        """Of being accepted, 0 to 1. Of a kind that was not fitted the model's own numbers are believed."""
        fitted = self.kinds.get(subject.kind)
        return _believed(subject) if fitted is None else fitted.probability(subject)

    def hopeless(self, kind: str) -> frozenset[str]:
        """Makers that nobody need ask."""
        fitted = self.kinds.get(kind)
        return frozenset() if fitted is None else fitted.hopeless

    def write(self, path: Path) -> None:
        """Write what `read` reads."""
        found = {
            "format": FORMAT,
            "model": self.model,
            "thresholds": dict(self.thresholds),
            "kinds": {kind: fitted.to_dict() for kind, fitted in sorted(self.kinds.items())},
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Calibrator:
        """The one in a file. Raises CalibratorError."""
        try:
            return cls._from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (KeyError, TypeError, AttributeError, ValueError, OSError, RecursionError) as error:
            why = f" ({error})" if isinstance(error, CalibratorError) else f": {type(error).__name__}"
            raise CalibratorError(f"{path} is no calibrator file{why}") from error

    @classmethod
    def _from_dict(cls, found: Any) -> Calibrator:
        if found.get("format") != FORMAT:
            raise CalibratorError(f"format {found.get('format')!r}, this version reads {FORMAT}")
        kinds = {
            str(kind): KindCalibrator(
                {str(name): _finite(weight) for name, weight in fitted["weights"].items()},
                _finite(fitted["bias"]),
                frozenset(map(str, fitted.get("hopeless", ()))),
                dict(fitted.get("report", {})),
            )
            for kind, fitted in found["kinds"].items()
        }
        thresholds = {str(name): _finite(value) for name, value in found.get("thresholds", {}).items()}
        return cls(kinds, thresholds, str(found.get("model", "")))

    @classmethod
    def of_folder(cls, folder: Path) -> Calibrator:
        """The one of a checkpoint folder; one that knows nothing where there is none. Raises CalibratorError."""
        path = folder / CALIBRATOR_FILE
        return cls.read(path) if path.is_file() else cls()


def _believed(subject: Subject) -> float:
    if subject.signals.get("log_prob") is not None and subject.kind == "edit":
        return sigmoid(subject.number("log_prob") - subject.number("keep_log_prob"))
    mean = subject.signals.get("mean_log_prob")
    return math.exp(min(0.0, subject.number("mean_log_prob"))) if mean is not None else 0.0


def sigmoid(value: float) -> float:
    """The logistic function."""
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        message = "a weight is not a finite number"
        raise ValueError(message)
    return number
