"""How likely a suggestion gets accepted: a logistic regression for each kind, fitted for one checkpoint.

A model's own numbers rank, but are no probabilities. And a weak model finds its own words likelier than a right draft,
so who proposed is a signal of its own. The fitted numbers stand in `calibrator.json` beside the weights; a user's own
fit, made by `calomel calibrate`, takes their place.

The language server, a fit on replays and a refit on a user's outcome log make the same features: all three have the
signals by name, as the outcome log stores them, and no text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from calomel.storage import write_whole

CALIBRATOR_FILE: Final = "calibrator.json"
# A maker is hopeless when, with 95 % confidence, less than this share of what it proposes adds an accepted one.
HOPELESS: Final = 0.05
# Grows when an older reader would misunderstand a file.
FORMAT: Final = 2
# The model's own proposals for an edit were chosen by the likelihood that then judges them: theirs is too good by that.
OWN: Final = frozenset({"canvas", "seeded", "verified"})
# Nats; further apart makes no difference any more.
_FURTHEST: Final = 30.0
# Beyond that a number in a log is a mistake.
_LARGEST: Final = 1e9
# Where a straight line may bend. Nats a token, nats in all, nats of a ratio, characters.
_BENDS: Final[Mapping[str, tuple[float, ...]]] = {
    "mean_log_prob": (-0.15, -0.4, -1.0),
    "log_prob": (-1.0, -4.0, -12.0),
    "min_log_prob": (-0.7, -2.0),
    "ratio": (-4.0, 0.0, 4.0),
    "margin": (-2.0, 0.0, 2.0),
    "inserted": (4.0, 12.0, 32.0),
}
# Features that are the logarithm of a count, the signal, and by what it is divided.
_COUNTED: Final = (
    ("steps", "steps", 2), ("support", "support", 1), ("agreeing", "agreeing", 1), ("rivals", "rivals", 1),
    ("log inserted", "characters_inserted", 3), ("log removed", "characters_removed", 3), ("cut", "cut", 3),
    ("repeats", "repeats", 1), ("distance", "distance", 3), ("line_before", "line_before", 3),
    ("line_after", "line_after", 3), ("word_before", "word_before", 2), ("recent edits", "recent_edits", 1),
    ("recent replacements", "recent_replacements", 1), ("recent inserted", "recent_inserted", 3),
    ("recent removed", "recent_removed", 3), ("last inserted", "last_inserted", 3), ("last removed", "last_removed", 3),
)  # fmt: skip
# Cross-validated on training packages, products of these took the AUROC of edits from 0.916 to 0.931.
_OF_MAKERS: Final = ("ratio", "support", "distance", "log inserted")
_PAIRED: Final = (
    *_OF_MAKERS, "log removed", "repeats", "rivals", "agreeing", "known_words", "mean_log_prob",
)  # fmt: skip


class CalibratorError(ValueError):
    """A file is no calibrator; the message names it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is known of one suggestion.

    Attributes:
        kind: `fill` or `edit`.
        maker: who proposed it.
        language: of the document.
        signals: `OutcomeSignals` by name; what is None or absent is not known.
    """

    kind: str
    maker: str = ""
    language: str = ""
    signals: Mapping[str, Any] = field(default_factory=dict)

    def number(self, name: str, default: float = 0.0) -> float:
        """A signal as a number that sums can stand; what is not known, or no number, is the default."""
        value = self.signals.get(name)
        if not isinstance(value, int | float) or not -_LARGEST < value < _LARGEST:
            return default
        return float(value)

    def count(self, name: str) -> float:
        """A signal that cannot be negative."""
        return max(0.0, self.number(name))


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
        thresholds: what `quiet`, `balanced` and `eager` come to, as `calomel.selectivity.fit` says.
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
        """Write what `read` reads. Raises OSError, and leaves the file that is there."""
        found = {
            "format": FORMAT,
            "model": self.model,
            "thresholds": dict(self.thresholds),
            "kinds": {kind: fitted.to_dict() for kind, fitted in sorted(self.kinds.items())},
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(found, indent=1, allow_nan=False) + "\n")

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


def features(subject: Subject) -> dict[str, float]:
    """Numbers of about one size, by name. What is not there is zero."""
    found = {name: math.log1p(subject.count(signal)) / size for name, signal, size in _COUNTED}
    found.update(_of_the_model(subject))
    found.update(_of_the_change(subject))
    found.update(_of_the_moment(subject))
    found.update(_names(subject))
    found.update(_products(subject, found))
    return {name: value for name, value in found.items() if value}


def _of_the_model(subject: Subject) -> Iterator[tuple[str, float]]:
    number, signals = subject.number, subject.signals
    mean = max(-_FURTHEST, number("mean_log_prob", -_FURTHEST if subject.maker else 0.0))
    yield from _bent("mean_log_prob", mean, 1.0)
    yield from _bent("min_log_prob", max(-_FURTHEST, number("min_log_prob")), 3.0)
    if signals.get("log_prob") is not None:
        yield "judged", 1.0
        yield from _bent("log_prob", max(-_FURTHEST, number("log_prob")), 10.0)
        ratio = max(-_FURTHEST, min(_FURTHEST, number("log_prob") - number("keep_log_prob")))
        yield from _bent("ratio", ratio, 10.0)
        yield "ratio of a draft", 0.0 if subject.maker in OWN else ratio / 10
        yield "keep_log_prob", max(-_FURTHEST, number("keep_log_prob")) / 10
    else:
        yield from _bent("log_prob", max(-_FURTHEST, mean * (number("tokens") + 1)), 10.0)
    yield "mean_entropy", min(5.0, number("mean_entropy"))
    yield "max_entropy", min(8.0, number("max_entropy")) / 3
    yield "end_log_prob", max(-10.0, number("end_log_prob")) / 3
    yield "no end", float(signals.get("end_log_prob") is None)
    if signals.get("margin") is not None:
        yield from _bent("margin", max(-_FURTHEST, min(_FURTHEST, number("margin"))), 10.0)


def _of_the_change(subject: Subject) -> Iterator[tuple[str, float]]:
    number = subject.number
    yield from _bent("inserted", min(200.0, number("characters_inserted")), 20.0)
    yield "only removes", float(not number("characters_inserted"))
    yield "only inserts", float(not number("characters_removed"))
    yield "lines_inserted", min(5.0, number("lines_inserted")) / 2
    yield "lines_removed", min(5.0, number("lines_removed")) / 2
    yield "edits", math.log1p(max(0.0, number("edits") - 1))
    yield "known_words", number("known_words")
    yield "no words", float(subject.signals.get("known_words") is None)


def _of_the_moment(subject: Subject) -> Iterator[tuple[str, float]]:
    number, count = subject.number, subject.count
    yield "line is empty", float(not number("line_before") and not number("line_after"))
    yield "at line end", float(not number("line_after"))
    yield "since_edit", math.log1p(min(60.0, count("since_edit"))) / 3
    yield "last only inserts", float(bool(number("last_inserted")) and not number("last_removed"))
    decided = count("accepted") + count("rejected")
    yield "accepted lately", (count("accepted") + 1) / (decided + 2) - 0.5


def _names(subject: Subject) -> Iterator[tuple[str, float]]:
    for name in ("before", "place", "finish_reason"):
        value = subject.signals.get(name)
        if isinstance(value, str) and value:
            yield f"{name}:{value}", 1.0
    yield f"maker:{subject.maker or 'canvas'}", 1.0
    if subject.language:
        # A tenth: a language takes a hundred times as much evidence as a maker, since few packages stand for it.
        yield f"language:{subject.language}", 0.1


def _products(subject: Subject, found: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """What one number means where another one is large; and what an edit's numbers mean of its maker."""
    for one, other in combinations(_PAIRED, 2):
        yield f"{one}*{other}", found.get(one, 0.0) * found.get(other, 0.0)
    if subject.kind == "edit":
        for name in _OF_MAKERS:
            yield f"{subject.maker or 'canvas'}*{name}", found.get(name, 0.0)


def _bent(name: str, value: float, size: float) -> Iterator[tuple[str, float]]:
    """A number, and how far it is beyond each bend: so a sum of weights can follow a curve."""
    yield name, value / size
    for bend in _BENDS.get(name, ()):
        yield f"{name}>{bend:g}", max(0.0, value - bend) / size
