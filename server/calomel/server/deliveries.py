"""What the server answered lately, and what became of it by the feedback of clients."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final, Literal

from calomel.suggest.completer import Kind
from calomel.suggest.offers import Outcome, OutcomeKind, OutcomeSink
from calomel.suggest.signals import OutcomeSignals

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


@dataclass(slots=True)
class _Known:
    """One answer, and what has been said of it. `shown` holds words of the user's: it stays in memory."""

    shown: Outcome
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

    def remember(
        self,
        completion_id: str,
        kind: Kind,
        model: str,
        probability: float,
        text: str,
        *,
        language_id: str = "",
        maker: str = "",
        signals: OutcomeSignals | None = None,
    ) -> None:
        """Keep one; the oldest is forgotten.

        Args:
            completion_id: of the answer.
            kind: `fill` or `edit`.
            model: that made it.
            probability: that it gets accepted, as the filter says.
            text: what is inserted; of an edit, what its changed lines become.
            language_id: of the document; empty when it is not known.
            maker: who proposed it.
            signals: numbers about it, from before it was shown.
        """
        shown = Outcome(
            id=completion_id,
            outcome="shown",
            reason="",
            kind=kind,
            uri="",
            language_id=language_id,
            trigger=_TRIGGER,
            model=model,
            probability=probability,
            visible_seconds=0.0,
            length=len(text.encode("utf-16-le", "surrogatepass")) // 2,
            accepted_length=0,
            text=text,
            signals=signals,
            maker=maker,
        )
        self._by_id[completion_id] = _Known(shown)
        while len(self._by_id) > self._kept:
            self._by_id.popitem(last=False)

    def find(self, completion_id: str) -> Outcome | None:
        """The answer of this id, as it was shown, if it is not forgotten."""
        known = self._by_id.get(completion_id)
        return None if known is None else known.shown

    def decided(self, completion_id: str, action: Action, accepted_length: int = 0) -> None:
        """Write down what became of an answer; nothing for one that is not known, and nothing twice.

        That it was shown is written before the first decision; the last decision counts.

        Args:
            completion_id: of the answer.
            action: what the user did.
            accepted_length: with `partial`, how much was taken, in UTF-16 units.
        """
        known = self._by_id.get(completion_id)
        if known is None or self._outcomes is None or known.decisions >= _DECISIONS:
            return
        shown = known.shown
        taken = shown.length if action == "accept" else min(accepted_length, shown.length) if action == "partial" else 0
        if known.last == (action, taken):
            return
        if known.last is None:
            self._outcomes.record(shown)
        known.last = action, taken
        known.decisions += 1
        self._outcomes.record(replace(shown, outcome=_OUTCOMES[action], reason=_REASON, accepted_length=taken))
