"""What the server answered lately, and what clients say became of it: they know an answer's id and nothing else."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, Literal

from calomel.suggest.completer import Kind
from calomel.suggest.outcome import Outcome, OutcomeKind, OutcomeSink
from calomel.suggest.outcome_signals import OutcomeSignals

Action = Literal["accept", "reject", "ignore", "partial"]

# An editor decides within minutes; a team of a hundred asks so often within a quarter of an hour.
_KEPT: Final = 4096
# Whoever knows an id may change their mind, but not fill the disk: the log keeps what is new, and drops what is old.
_DECISIONS: Final = 8
# What made the editor ask, and how it was answered, is not told by these clients.
_TRIGGER: Final = "http"
_REASON: Final = "feedback"
_OUTCOMES: Final[dict[Action, OutcomeKind]] = {
    "accept": "accepted",
    "reject": "rejected",
    "ignore": "ignored",
    "partial": "partly_accepted",
}


@dataclass(frozen=True, slots=True)
class Delivered:
    """One answer. `text` holds words of the user's: it stays in memory.

    Attributes:
        kind: `fill` or `edit`.
        model: that made it.
        probability: that it gets accepted, as the filter says.
        text: what is inserted; of an edit, what its changed lines become.
        language_id: of the document; empty when it is not known.
        maker: who proposed it.
        signals: numbers about it, from before it was shown.
    """

    kind: Kind
    model: str
    probability: float
    text: str
    language_id: str = ""
    maker: str = ""
    signals: OutcomeSignals | None = None


@dataclass(slots=True)
class _Known:
    """One answer, and what has been said of it."""

    delivered: Delivered
    decisions: int = 0
    last: tuple[Action, int] | None = None


class Deliveries:
    """The last answers by completion id. Used from the event loop alone.

    Args:
        outcomes: keeps what became of them; None to forget it.
        kept: how many answers.
    """

    def __init__(self, outcomes: OutcomeSink | None = None, kept: int = _KEPT) -> None:
        self._outcomes = outcomes
        self._kept = kept
        self._by_id: OrderedDict[str, _Known] = OrderedDict()

    def remember(self, completion_id: str, delivered: Delivered) -> None:
        """Keep one; the oldest is forgotten."""
        self._by_id[completion_id] = _Known(delivered)
        while len(self._by_id) > self._kept:
            self._by_id.popitem(last=False)

    def find(self, completion_id: str) -> Delivered | None:
        """The answer of this id, if it is not forgotten."""
        known = self._by_id.get(completion_id)
        return None if known is None else known.delivered

    def decided(self, completion_id: str, action: Action, accepted_length: int = 0, *, reason: str = _REASON) -> None:
        """Write down what became of an answer; nothing for one that is not known, and nothing twice.

        That it was shown is written before the first decision; the last decision counts.

        Args:
            completion_id: of the answer.
            action: what the user did.
            accepted_length: with `partial`, how much was taken, in UTF-16 units.
            reason: how it became known.
        """
        known = self._by_id.get(completion_id)
        if known is None or self._outcomes is None or known.decisions >= _DECISIONS:
            return
        length = len(known.delivered.text.encode("utf-16-le", "surrogatepass")) // 2
        taken = length if action == "accept" else min(accepted_length, length) if action == "partial" else 0
        if known.last == (action, taken):
            return
        if known.last is None:
            self._outcomes.record(_outcome(completion_id, known.delivered, "shown", length, 0, ""))
        known.last = action, taken
        known.decisions += 1
        self._outcomes.record(_outcome(completion_id, known.delivered, _OUTCOMES[action], length, taken, reason))


def _outcome(
    completion_id: str, delivered: Delivered, outcome: OutcomeKind, length: int, taken: int, reason: str
) -> Outcome:
    return Outcome(
        id=completion_id,
        outcome=outcome,
        reason=reason,
        kind=delivered.kind,
        uri="",
        language_id=delivered.language_id,
        trigger=_TRIGGER,
        model=delivered.model,
        probability=delivered.probability,
        visible_seconds=0.0,
        length=length,
        accepted_length=taken,
        text=delivered.text,
        signals=delivered.signals,
        maker=delivered.maker,
    )
