"""Whether a candidate is worth showing: a threshold on how likely it gets accepted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from calomel.suggest.company import Company
from calomel.suggest.completer import Candidate, Kind
from calomel.suggest.lately import Lately
from calomel.suggest.silence import SilenceReason
from calomel.suggest.suggestion import TextEdit
from calomel.suggest.surroundings import Surroundings
from calomel.suggest.trigger import Trigger
from calomel.workspace.settings import Aggressiveness

# The probability of being accepted that a suggestion must reach, where no calibrator says what the names come to.
THRESHOLDS: Final[Mapping[str, float]] = {"quiet": 0.5, "balanced": 0.3, "eager": 0.15}


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
        company: the other candidates of the same answer.
        lately: what the user did in the last minute.
        place: where the cursor stands: `code`, `comment` or `string`; empty where nobody can tell.
        around: numbers about the place and the words.
        likely: that it gets accepted, calibrated, 0 to 1; None where that is not known.
        thresholds: what the names of thresholds come to for this model.
        filters: the hard filters that drop it; the first one alone unless somebody watches.
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
    company: Company = field(default_factory=Company)
    lately: Lately = field(default_factory=Lately)
    place: str = ""
    around: Surroundings | None = None
    likely: float | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    filters: tuple[str, ...] = ()


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

    That is the calibrated probability, where it is known; else `exp(mean reveal log-probability)`.

    Attributes:
        aggressiveness: a name of `THRESHOLDS`, or the threshold itself, 0 to 1.
        by_language: the same for languages that want another one; `*` for all that are not named.
    """

    aggressiveness: Aggressiveness = "balanced"
    by_language: Mapping[str, Aggressiveness] = field(default_factory=dict)

    def threshold(self, language_id: str = "", named: Mapping[str, float] = THRESHOLDS) -> float:
        """The number behind the name that a language has; an unknown name counts as `balanced`."""
        wanted = self.by_language.get(language_id, self.by_language.get("*", self.aggressiveness))
        if not isinstance(wanted, str):
            return wanted
        names = {**THRESHOLDS, **named}
        return names.get(wanted, names["balanced"])

    def decide(self, candidate: Candidate, signals: Signals) -> Verdict:
        """Whoever asked explicitly gets an answer, sure or not."""
        probability = math.exp(min(0.0, candidate.mean_log_prob)) if signals.likely is None else signals.likely
        if signals.trigger is Trigger.EXPLICIT or probability >= self.threshold(
            signals.language_id, signals.thresholds
        ):
            return Show(probability)
        return Hide(SilenceReason.LOW_CONFIDENCE, probability)
