"""What a recalled text is worth beside the answer of one model: `recall.json` in the folder of its checkpoint.

Three logistic regressions on holes of known content: how likely a recalled text is right before the model has seen it,
how likely with the likelihood that the model gives it, and how likely the model's own answer is right. The better a
model, the less often it is outdone by repeating what stands elsewhere; one without the file recalls nothing.
`calomel calibrate --recall` writes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from calomel.storage import write_whole
from calomel.suggest.recall import Recalled

FILE: Final = "recall.json"
_FORMAT: Final = 1

PRIOR: Final = ("bias", "before", "behind", "agreeing", "tokens")
DRAFT: Final = (*PRIOR, "log_prob", "least", "end")
OWN: Final = ("bias", "log_prob", "least", "tokens")
# Log-probabilities below this say nothing more.
_LEAST: Final = -20.0


class RecallWorthError(Exception):
    """`recall.json` is damaged; the message says how."""


@dataclass(frozen=True, slots=True)
class RecallWorth:
    """Weights of the three regressions, by feature, and when the model need not be asked for an answer of its own.

    Attributes:
        prior: of `PRIOR`.
        draft: of `DRAFT`.
        own: of `OWN`.
        sure: a prior from which on the model only judges the text.
    """

    prior: Mapping[str, float]
    draft: Mapping[str, float]
    own: Mapping[str, float]
    sure: float

    def is_sure(self, found: Recalled, tokens: int) -> bool:
        """Whether the model's own answer to the hole would hardly be the better one."""
        return probability(self.prior, prior_features(found, tokens)) >= self.sure

    def of_draft(self, found: Recalled, log_probs: Sequence[float], end_log_prob: float | None) -> float:
        """The probability that a recalled text is right, whose tokens and whose end the model gives these."""
        return probability(self.draft, draft_features(found, log_probs, end_log_prob))

    def of_own(self, log_probs: Sequence[float], end_log_prob: float | None) -> float:
        """The probability that the model's own answer is right, from what it said of its tokens."""
        return probability(self.own, own_features(log_probs, end_log_prob))

    def write(self, folder: Path) -> None:
        """Write `recall.json` into `folder`, in one step."""
        write_whole(folder / FILE, json.dumps({"format": _FORMAT, **asdict(self)}, indent=2) + "\n")


def read_worth(folder: Path) -> RecallWorth | None:
    """What the checkpoint in `folder` makes of recalled texts; None where nothing is known of that.

    Raises:
        RecallWorthError: the file is there, but not what it should be.
    """
    place = folder / FILE
    try:
        raw = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise RecallWorthError(f"{place} cannot be read: {error}") from error
    if not isinstance(raw, dict) or raw.get("format") != _FORMAT:
        raise RecallWorthError(f"{place} is of another format than {_FORMAT}; update Calomel, or fit it anew")
    return RecallWorth(
        _weights(place, raw, "prior", PRIOR),
        _weights(place, raw, "draft", DRAFT),
        _weights(place, raw, "own", OWN),
        _number(place, raw, "sure"),
    )


def probability(weights: Mapping[str, float], features: Mapping[str, float]) -> float:
    """What a regression says of `features`."""
    score = math.fsum(weights[name] * value for name, value in features.items())
    return 1.0 / (1.0 + math.exp(-max(-700.0, min(700.0, score))))


def prior_features(found: Recalled, tokens: int) -> dict[str, float]:
    """What is known of a recalled text of so many tokens without the model."""
    return {
        "bias": 1.0,
        "before": math.log(found.before),
        "behind": math.log1p(found.behind),
        "agreeing": found.agreeing / found.places,
        "tokens": math.log(max(1, tokens)),
    }


def draft_features(found: Recalled, log_probs: Sequence[float], end_log_prob: float | None) -> dict[str, float]:
    """The same, and what the model says."""
    said = _said(log_probs, end_log_prob)
    return prior_features(found, len(log_probs)) | {
        "log_prob": said["log_prob"],
        "least": said["least"],
        "end": _bounded(end_log_prob),
    }


def own_features(log_probs: Sequence[float], end_log_prob: float | None) -> dict[str, float]:
    """What the model said of its own answer."""
    return {"bias": 1.0, **_said(log_probs, end_log_prob), "tokens": math.log(max(1, len(log_probs)))}


def _said(log_probs: Sequence[float], end_log_prob: float | None) -> dict[str, float]:
    known = [_bounded(one) for one in (*log_probs, end_log_prob) if one is not None]
    return {"log_prob": math.fsum(known) / max(1, len(known)), "least": min(known, default=0.0)}


def _bounded(log_prob: float | None) -> float:
    return 0.0 if log_prob is None else max(_LEAST, log_prob)


def _weights(place: Path, raw: Mapping[str, Any], part: str, names: Sequence[str]) -> dict[str, float]:
    found = raw.get(part)
    if not isinstance(found, dict) or set(found) != set(names):
        raise RecallWorthError(f"{place}: {part} must have just {', '.join(names)}")
    return {name: _number(place, found, name) for name in names}


def _number(place: Path, raw: Mapping[str, Any], name: str) -> float:
    value = raw.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RecallWorthError(f"{place}: {name} is {value!r}; it must be a number")
    return float(value)
