"""Gates that tell a replay more than an editor needs to know: what was held back, and all that there is to decide."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from calomel.suggest.completer import Candidate
from calomel.suggest.gate import Gate, Hide, Signals, ThresholdGate, Verdict
from calomel.suggest.silence import SilenceReason

# As many as answers are cached: any of them may be offered later.
_REMEMBERED: Final = 64


@dataclass(frozen=True, slots=True)
class Decision:
    """What the gate was asked, and what it said."""

    candidate: Candidate
    signals: Signals
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class HideAll:
    """Shows nothing, so that no place hides the next one: for those who want to know all that there is to decide."""

    def decide(self, candidate: Candidate, signals: Signals) -> Verdict:
        """As sure as a threshold would be."""
        verdict = ThresholdGate().decide(candidate, signals)
        return Hide(SilenceReason.LOW_CONFIDENCE, verdict.probability)


class WatchedGate:
    """Decides as another gate does."""

    def __init__(self, gate: Gate) -> None:
        # Of what was decided since somebody set it to None, the surest: one question may have several candidates.
        self.best: Decision | None = None
        self._gate = gate
        self._decisions: deque[Decision] = deque(maxlen=_REMEMBERED)

    def decide(self, candidate: Candidate, signals: Signals) -> Verdict:
        """Show or hide."""
        made = Decision(candidate, signals, self._gate.decide(candidate, signals))
        self._decisions.append(made)
        if self.best is None or made.verdict.probability > self.best.verdict.probability:
            self.best = made
        return made.verdict

    def about(self, candidate: Candidate) -> Decision | None:
        """What was decided about a candidate."""
        return next((each for each in reversed(self._decisions) if each.candidate is candidate), None)
