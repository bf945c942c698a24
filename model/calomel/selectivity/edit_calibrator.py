"""How likely a proposed edit is the right one: a logistic regression over a few signals, fitted for one checkpoint.

The likelihood ratio of edit and keep ranks the proposals of one maker, and is no probability. A weak model finds its
own words likelier than a right draft, so who proposed is a signal of its own. The fitted numbers stand in
`calibrator.json` beside the weights.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

CALIBRATOR_FILE: Final = "calibrator.json"
_KEY: Final = "edit"
# The model's own proposals were chosen by the likelihood that then judges them: theirs is too good by that choice.
_OWN: Final = frozenset({"canvas", "seeded", "verified"})
# Nats; further apart makes no difference any more.
_FURTHEST: Final = 30.0


@dataclass(frozen=True, slots=True)
class EditSignals:
    """What is known of a proposed edit.

    Attributes:
        log_prob: nats, of the region's new text with its end.
        keep_log_prob: nats, of the region as it is with its end.
        tokens: of the new text, as a length for the mean.
        maker: who proposed it.
        support: how many of the last edits agree with it; 0 for one of the model's own.
        rows: lines between the cursor and the edit.
        inserted: characters.
        removed: characters.
    """

    log_prob: float
    keep_log_prob: float
    tokens: int = 1
    maker: str = ""
    support: int = 0
    rows: int = 0
    inserted: int = 0
    removed: int = 0

    @property
    def ratio(self) -> float:
        """Nats by which the edit is more probable than silence."""
        return self.log_prob - self.keep_log_prob

    def features(self) -> dict[str, float]:
        """Numbers of about one size, by name."""
        ratio = max(-_FURTHEST, min(_FURTHEST, self.ratio)) / 10
        return {
            "ratio": ratio,
            "ratio of a draft": 0.0 if self.maker in _OWN else ratio,
            "mean_log_prob": max(-_FURTHEST, self.log_prob / max(1, self.tokens)),
            "keep_mean_log_prob": max(-_FURTHEST, self.keep_log_prob / max(1, self.tokens)),
            "support": math.log1p(self.support),
            "rows": math.log1p(self.rows) / 3,
            "inserted": math.log1p(self.inserted) / 3,
            "removed": math.log1p(self.removed) / 3,
            f"maker:{self.maker}": 1.0,
        }


@dataclass(frozen=True, slots=True)
class EditCalibrator:
    """Weights by feature name, and a bias. Without any it trusts the likelihood ratio as it is."""

    weights: tuple[tuple[str, float], ...] = ()
    bias: float = 0.0

    def probability(self, signals: EditSignals) -> float:
        """Of being right, 0 to 1. A maker that the fit has not seen counts as none."""
        if not self.weights:
            return _sigmoid(signals.ratio)
        features = signals.features()
        return _sigmoid(self.bias + sum(weight * features.get(name, 0.0) for name, weight in self.weights))

    def to_dict(self) -> dict[str, Any]:
        """What `calibrator.json` holds under `edit`."""
        return {"weights": dict(self.weights), "bias": self.bias}

    @classmethod
    def from_folder(cls, folder: Path) -> EditCalibrator:
        """The one of a checkpoint folder; one that knows nothing where there is none.

        Raises:
            ValueError: the file is damaged; the message names it.
        """
        path = folder / CALIBRATOR_FILE
        if not path.is_file():
            return cls()
        try:
            fitted = json.loads(path.read_text(encoding="utf-8"))[_KEY]
            weights = {str(name): _finite(weight) for name, weight in fitted["weights"].items()}
            return cls(tuple(sorted(weights.items())), _finite(fitted["bias"]))
        except (KeyError, TypeError, AttributeError, ValueError, OSError) as error:
            message = f"{path} is no calibrator file: {type(error).__name__}"
            raise ValueError(message) from error


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        message = "a weight is not a finite number"
        raise ValueError(message)
    return number


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))
