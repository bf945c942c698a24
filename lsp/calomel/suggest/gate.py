"""Whether a candidate is worth showing. A threshold now; the interface is that of a calibrated filter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

from calomel.suggest.completer import Candidate, Kind
from calomel.suggest.silence import SilenceReason
from calomel.suggest.suggestion import TextEdit
from calomel.suggest.trigger import Trigger
from calomel.workspace.preferences import Aggressiveness

# The geometric mean of the tokens' probabilities that a suggestion must reach.
THRESHOLDS: Final[dict[str, float]] = {"quiet": 0.5, "balanced": 0.3, "eager": 0.15}


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known about a candidate besides the model's own numbers.

    Attributes:
        kind: `fill` or `edit`.
        trigger: what made the editor ask.
        edits: what it would change, trimmed and checked.
        language_id: of the document.
        distance: lines between the cursor and the first edit.
        since_edit: seconds since the last change of the document; None when there was none.
        accepted: of the last ten suggestions that were decided.
        rejected: of them.
        cut: characters that the checks took from the candidate's text.
        support: how many of the last edits agree with a draft; 0 for the model's own words.
        likely: that an edit is right, calibrated, 0 to 1; None where that is not known.
    """

    kind: Kind
    trigger: Trigger
    edits: tuple[TextEdit, ...]
    language_id: str = ""
    distance: int = 0
    since_edit: float | None = None
    accepted: int = 0
    rejected: int = 0
    cut: int = 0
    support: int = 0
    likely: float | None = None


@dataclass(frozen=True, slots=True)
class Show:
    """Show it; `probability` of being accepted, 0 to 1."""

    probability: float


@dataclass(frozen=True, slots=True)
class Hide:
    """Do not show it."""

    reason: SilenceReason
    probability: float = 0.0


Verdict = Show | Hide


class Gate(Protocol):
    """Decides about candidates that passed every check."""

    def decide(self, candidate: Candidate, signals: Signals) -> Verdict:
        """Show or hide. Fast, pure, never raises."""


@dataclass(frozen=True, slots=True)
class ThresholdGate:
    """Shows what is sure enough, against a threshold.

    That is how likely an edit is right, where it is known; else `exp(mean reveal log-probability)`.

    Attributes:
        aggressiveness: a name of `THRESHOLDS`, or the threshold itself, 0 to 1.
    """

    aggressiveness: Aggressiveness = "balanced"

    @property
    def threshold(self) -> float:
        """The number behind the name; an unknown name counts as `balanced`."""
        if isinstance(self.aggressiveness, str):
            return THRESHOLDS.get(self.aggressiveness, THRESHOLDS["balanced"])
        return self.aggressiveness

    def decide(self, candidate: Candidate, signals: Signals) -> Verdict:
        """Whoever asked explicitly gets an answer, sure or not."""
        probability = math.exp(min(0.0, candidate.mean_log_prob)) if signals.likely is None else signals.likely
        if signals.trigger is Trigger.EXPLICIT or probability >= self.threshold:
            return Show(probability)
        return Hide(SilenceReason.LOW_CONFIDENCE, probability)
