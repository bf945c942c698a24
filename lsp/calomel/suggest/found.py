"""What came of asking a model: something to offer, or something that was held back."""

from __future__ import annotations

from dataclasses import dataclass, field

from calomel.suggest.completer import Candidate, CompleteRequest
from calomel.suggest.gate import Signals
from calomel.suggest.planned import Planned
from calomel.suggest.silence import SilenceReason


@dataclass(frozen=True, slots=True)
class Found:
    """A suggestion, in offsets of the question's text.

    Attributes:
        edits: what it would change.
        candidate: the model's own account.
        probability: that it gets accepted.
        signals: what the gate knew.
        truncated: the model had more to say.
        request: what the model was asked, secrets masked.
        judged_seconds: that filters and calibrator took for it.
    """

    edits: tuple[Planned, ...]
    candidate: Candidate
    probability: float
    signals: Signals
    truncated: bool = False
    request: CompleteRequest | None = field(default=None, repr=False)
    judged_seconds: float = 0.0

    @property
    def maker(self) -> str:
        """Who proposed it."""
        return self.candidate.maker


@dataclass(frozen=True, slots=True)
class Held:
    """A suggestion that is not shown, and why."""

    reason: SilenceReason
    found: Found


Answered = Found | Held | SilenceReason


def better(one: Answered | None, other: Answered) -> Answered:
    """Which of two answers counts: what can be shown before what is held back, then the likelier one."""
    if one is None:
        return other
    if _rank(one) == _rank(other) and isinstance(one, Found | Held) and isinstance(other, Found | Held):
        return other if _probability(other) > _probability(one) else one
    return other if _rank(other) > _rank(one) else one


def _rank(answer: Answered) -> int:
    return 2 if isinstance(answer, Found) else 1 if isinstance(answer, Held) else 0


def _probability(answer: Found | Held) -> float:
    return answer.probability if isinstance(answer, Found) else answer.found.probability
