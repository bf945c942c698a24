"""The probability that a suggestion is accepted: a logistic regression per kind, fitted for one checkpoint.

A model's own numbers give a ranking, but no probabilities. And a weak model finds its own words likelier than a correct
draft, so who proposed a suggestion is a signal of its own. The fitted numbers are in `calibrator.json` beside the
weights; a user's own fit, made by `calomel calibrate`, replaces them.

The language server, a fit on replays and a refit on a user's outcome log compute the same features: all three have the
signals by name, as the outcome log stores them, and no text.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import msgspec

from calomel.storage import read_whole, write_whole

CALIBRATOR_FILE: Final = "calibrator.json"
# The power of its length by which the log-probability of an unfitted model's text is divided: 1 is their mean, which
# long texts win, 0 their sum, which only the shortest do.
_LENGTH_PENALTY: Final = 0.75
# A maker is hopeless if, with 95 % confidence, less than this share of its proposals adds an accepted one.
HOPELESS: Final = 0.05
# Incremented when an older reader would misunderstand a file.
FORMAT: Final = 3
# The probability of being accepted that a suggestion must reach, unless a fit gives other values for these names.
THRESHOLDS: Final[Mapping[str, float]] = {"quiet": 0.5, "balanced": 0.3, "eager": 0.15}
# Who makes the model's own proposals. For an edit the likelihood that then judges them chose them, which biases it.
OWN: Final = "canvas"
# Nats; larger differences make no difference any more.
_FURTHEST: Final = 30.0
# A larger number in a log is a mistake.
_LARGEST: Final = 1e9
# The divisor of a number, and where its line may bend: nats per token, in total, of a ratio; characters.
_BENDS: Final[Mapping[str, tuple[float, tuple[float, ...]]]] = {
    "mean_log_prob": (1.0, (-0.15, -0.4, -1.0)),
    "log_prob": (10.0, (-1.0, -4.0, -12.0)),
    "min_log_prob": (3.0, (-0.7, -2.0)),
    "ratio": (10.0, (-4.0, 0.0, 4.0)),
    "margin": (10.0, (-2.0, 0.0, 2.0)),
    "inserted": (20.0, (4.0, 12.0, 32.0)),
}
# Features that are the logarithm of a count: the signal, and its divisor.
_COUNTED: Final = (
    ("steps", "steps", 2), ("support", "support", 1), ("agreeing", "agreeing", 1), ("rivals", "rivals", 1),
    ("log inserted", "characters_inserted", 3), ("log removed", "characters_removed", 3), ("cut", "cut", 3),
    ("repeats", "repeats", 1), ("distance", "distance", 3), ("line_before", "line_before", 3),
    ("line_after", "line_after", 3), ("word_before", "word_before", 2), ("recent edits", "recent_edits", 1),
    ("recent replacements", "recent_replacements", 1), ("recent inserted", "recent_inserted", 3),
    ("recent removed", "recent_removed", 3), ("last inserted", "last_inserted", 3), ("last removed", "last_removed", 3),
    ("drafts", "drafts", 1), ("nearest", "nearest", 3), ("remaining", "remaining", 2),
)  # fmt: skip
# Cross-validated on training packages, products of these raised the AUROC of edits from 0.916 to 0.931.
_PAIRED: Final = (
    "ratio", "support", "distance", "log inserted", "log removed", "repeats", "rivals", "agreeing", "known_words",
    "mean_log_prob", "likeness",
)  # fmt: skip
_OF_MAKERS: Final = (*_PAIRED[:4], "likeness", "drafts", "nearest", "remaining", "indented")


# The share of a rule's drafts that was right where an edit was to come (docs/results/bench-edits-held-out.md), for
# models that judge none, and for makers that no fit has seen.
RIGHT: Final[Mapping[str, float]] = {
    "arguments": 0.87, "awaited": 0.9, "rename": 0.92, "substitution": 0.62, "template": 0.64,
}  # fmt: skip
# Nats; further away from even, the fit extrapolates.
_AWAY: Final = 5.0
# For a model's own text of unknown likelihood: `balanced` shows it, `quiet` does not.
_UNTOLD: Final = 0.4


class CalibratorError(ValueError):
    """A file is not a calibrator; the message names it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is known of one suggestion.

    Attributes:
        kind: `fill` or `edit`.
        maker: who proposed it.
        language: of the document.
        signals: `OutcomeSignals` by name; None or absent means unknown.
    """

    kind: str
    maker: str = ""
    language: str = ""
    signals: Mapping[str, Any] = field(default_factory=dict)

    def number(self, name: str, default: float = 0.0) -> float:
        """A signal as a number that is safe to sum; if it is unknown or not a number, the default."""
        value = self.signals.get(name)
        if not isinstance(value, int | float) or not -_LARGEST < value < _LARGEST:
            return default
        return float(value)

    def count(self, name: str) -> float:
        """A signal that cannot be negative."""
        return max(0.0, self.number(name))


@dataclass(frozen=True, slots=True)
class KindCalibrator:
    """Weights by feature name, a bias, and figures about the data that they were fitted to.

    Attributes:
        weights: by name of the feature; missing ones are 0.
        bias: added to the sum.
        hopeless: makers almost none of whose proposals were accepted: they need not be asked.
        thresholds: the values of `quiet`, `balanced` and `eager`, see `calomel.selectivity.fit`.
        floors: by the same names, the least sum in nats of the log-probabilities of a text's tokens if it is the
            model's own and shown; a text is abandoned once its sum is lower.
        report: figures of the fit, for people: counts, ECE, AUROC, reliability.
    """

    weights: Mapping[str, float]
    bias: float
    hopeless: frozenset[str] = frozenset()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    floors: Mapping[str, float] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)

    def probability(self, subject: Subject) -> float:
        """The probability of being accepted, 0 to 1."""
        score = self.score(features(subject))
        seen, right = self.report.get("makers"), RIGHT.get(subject.maker)
        if seen is not None and subject.maker not in seen and right is not None and subject.kind == "edit":
            # The fit knows what tells right from wrong in other makers' proposals, and nothing of this maker's.
            score = (max(-_AWAY, min(_AWAY, score)) + math.log(right / (1 - right))) / 2
        # A hopeless maker's correct proposals are too few examples for so many features.
        return sigmoid(score) * (HOPELESS if subject.maker in self.hopeless else 1.0)

    def score(self, found: Mapping[str, float]) -> float:
        """The weighted sum of some features: the logit of the probability."""
        weights = self.weights
        return self.bias + sum(weights.get(name, 0.0) * value for name, value in found.items())


@dataclass(frozen=True, slots=True)
class Calibrator:
    """One per fitted kind.

    Attributes:
        kinds: by `fill` and `edit`.
        model: short hash of the weights that it was fitted for; empty if it is stored beside them.
    """

    kinds: Mapping[str, KindCalibrator] = field(default_factory=dict)
    model: str = ""

    def probability(self, subject: Subject) -> float:
        """The probability of being accepted, 0 to 1. For a kind without a fit the model's own numbers are used."""
        fitted = self.kinds.get(subject.kind)
        return _believed(subject) if fitted is None else fitted.probability(subject)

    def hopeless(self, kind: str) -> frozenset[str]:
        """Makers that need not be asked."""
        fitted = self.kinds.get(kind)
        return frozenset() if fitted is None else fitted.hopeless

    def thresholds(self, kind: str) -> Mapping[str, float]:
        """The values of the thresholds for a kind, by name."""
        fitted = self.kinds.get(kind)
        return THRESHOLDS if fitted is None else {**THRESHOLDS, **fitted.thresholds}

    def write(self, path: Path) -> None:
        """Write what `read` reads. Raises OSError, and then keeps the existing file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        found = {"format": FORMAT, **asdict(self)}
        write_whole(path, json.dumps(found, indent=1, allow_nan=False, sort_keys=True, default=sorted) + "\n")

    @classmethod
    def read(cls, path: Path) -> Calibrator:
        """The calibrator in a file. Raises CalibratorError."""
        try:
            found = msgspec.json.decode(read_whole(path))
            if found.get("format") != FORMAT:
                raise CalibratorError(f"format {found.get('format')!r}, this version reads {FORMAT}")
            return msgspec.convert(found | {"kinds": found["kinds"]}, cls)
        except (KeyError, TypeError, AttributeError, ValueError, OSError, RecursionError) as error:
            why = f" ({error})" if isinstance(error, CalibratorError) else f": {type(error).__name__}"
            raise CalibratorError(f"{path} is not a calibrator file{why}") from error

    @classmethod
    def of_folder(cls, folder: Path) -> Calibrator:
        """The calibrator of a checkpoint folder; an empty one if there is none. Raises CalibratorError."""
        path = folder / CALIBRATOR_FILE
        return cls.read(path) if os.path.lexists(path) else cls()


def _believed(subject: Subject) -> float:
    """The model's own confidence; without one, how often such a proposal is right."""
    if subject.signals.get("log_prob") is not None and subject.kind == "edit":
        return sigmoid(subject.number("log_prob") - subject.number("keep_log_prob"))
    if subject.signals.get("mean_log_prob") is not None:
        mean = min(0.0, subject.number("mean_log_prob"))
        return math.exp(mean if subject.kind == "edit" else mean * _kept_tokens(subject) ** (1.0 - _LENGTH_PENALTY))
    if subject.maker == OWN:
        return _UNTOLD
    return RIGHT.get(subject.maker, 0.0) if subject.kind == "edit" else 0.0


def _kept_tokens(subject: Subject) -> float:
    """Tokens of a text for the cursor, without those of its end that is not shown."""
    tokens = subject.count("tokens") + ("end_log_prob" in subject.signals)
    kept, cut = subject.count("characters_inserted"), subject.count("cut")
    return max(1.0, tokens * kept / (kept + cut)) if kept else max(1.0, tokens)


def sigmoid(value: float) -> float:
    """The logistic function."""
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))


def features(subject: Subject) -> dict[str, float]:
    """Numbers of similar size, by name. Missing ones are zero."""
    number, count, signals, maker = subject.number, subject.count, subject.signals, subject.maker or "canvas"
    found = {name: math.log1p(count(signal)) / size for name, signal, size in _COUNTED}
    found |= _of_the_model(subject)
    found |= {
        **_bent("inserted", min(200.0, number("characters_inserted"))),
        "only removes": float(not number("characters_inserted")),
        "only inserts": float(not number("characters_removed")),
        "lines_inserted": min(5.0, number("lines_inserted")) / 2,
        "lines_removed": min(5.0, number("lines_removed")) / 2,
        "edits": math.log1p(max(0.0, number("edits") - 1)),
        "known_words": number("known_words"),
        "likeness": number("likeness"),
        "indented": number("indented"),
        "no words": float(signals.get("known_words") is None),
        "line is empty": float(not number("line_before") and not number("line_after")),
        "at line end": float(not number("line_after")),
        "since_edit": math.log1p(min(60.0, count("since_edit"))) / 3,
        "last only inserts": float(bool(number("last_inserted")) and not number("last_removed")),
        "accepted lately": (count("accepted") + 1) / (count("accepted") + count("rejected") + 2) - 0.5,
    }
    for name in ("before", "place", "finish_reason"):
        value = signals.get(name)
        if isinstance(value, str) and value:
            found[f"{name}:{value}"] = 1.0
    found[f"maker:{maker}"] = 1.0
    if subject.language:
        # A tenth: a language takes a hundred times as much evidence as a maker, since few packages represent it.
        found[f"language:{subject.language}"] = 0.1
    # What one number means when another one is large; and what an edit's numbers mean for its maker.
    found |= {f"{one}*{other}": found.get(one, 0.0) * found.get(other, 0.0) for one, other in combinations(_PAIRED, 2)}
    if subject.kind == "edit":
        found |= {f"{maker}*{name}": found.get(name, 0.0) for name in _OF_MAKERS}
    return {name: value for name, value in found.items() if value}


def _of_the_model(subject: Subject) -> dict[str, float]:
    number, signals = subject.number, subject.signals
    mean = max(-_FURTHEST, number("mean_log_prob", -_FURTHEST if subject.maker else 0.0))
    found = _bent("mean_log_prob", mean) | _bent("min_log_prob", max(-_FURTHEST, number("min_log_prob")))
    if signals.get("log_prob") is not None:
        ratio = max(-_FURTHEST, min(_FURTHEST, number("log_prob") - number("keep_log_prob")))
        found |= {
            "judged": 1.0,
            **_bent("log_prob", max(-_FURTHEST, number("log_prob"))),
            **_bent("ratio", ratio),
            "ratio of a draft": 0.0 if subject.maker == OWN else ratio / 10,
            "keep_log_prob": max(-_FURTHEST, number("keep_log_prob")) / 10,
        }
    else:
        found |= _bent("log_prob", max(-_FURTHEST, mean * (number("tokens") + 1)))
    found |= {
        "mean_entropy": min(5.0, number("mean_entropy")),
        "max_entropy": min(8.0, number("max_entropy")) / 3,
        "end_log_prob": max(-10.0, number("end_log_prob")) / 3,
        "no end": float(signals.get("end_log_prob") is None),
    }
    if signals.get("margin") is not None:
        found |= _bent("margin", max(-_FURTHEST, min(_FURTHEST, number("margin"))))
    return found


def _bent(name: str, value: float) -> dict[str, float]:
    """A number, and how far it is beyond each bend, so that a weighted sum can follow a curve."""
    size, bends = _BENDS[name]
    return {name: value / size} | {f"{name}>{bend:g}": max(0.0, value - bend) / size for bend in bends}
