"""The server's recent answers, and what became of them according to clients' feedback."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final, Literal

from calomel.infer.completer import Kind
from calomel.suggest.offers import Outcome, OutcomeKind, OutcomeSink
from calomel.suggest.signals import OutcomeSignals

Action = Literal["accept", "reject", "ignore", "partial"]

# An editor decides within minutes; a team of a hundred asks this often within a quarter of an hour.
_KEPT: Final = 4096
# A client that knows an id may change its decision, but not flood the log, which drops old entries for new ones.
_DECISIONS: Final = 8
# These clients report neither what made the editor ask nor the reason for a decision.
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
    """One answer, and its decisions so far. `shown` holds the user's text: it stays in memory."""

    shown: Outcome
    decisions: int = 0
    last: tuple[Action, int] | None = None


class Deliveries:
    """The latest answers by completion id. Used from the event loop only.

    Args:
        outcomes: records what became of them; None to discard it.
        kept: how many answers are kept.
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
        """Remember an answer; the oldest is forgotten.

        Args:
            completion_id: of the answer.
            kind: `fill` or `edit`.
            model: the one that made it.
            probability: that it gets accepted, according to the filter.
            text: the inserted text; for an edit, the new text of its changed lines.
            language_id: of the document; empty when unknown.
            maker: the source that proposed it.
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
        """The answer with this id, as it was shown, unless it is forgotten."""
        known = self._by_id.get(completion_id)
        return None if known is None else known.shown

    def decided(self, completion_id: str, action: Action, accepted_length: int = 0) -> None:
        """Record what became of an answer; nothing for an unknown one, and nothing twice.

        Before the first decision, the answer is recorded as shown; the last decision counts.

        Args:
            completion_id: of the answer.
            action: what the user did.
            accepted_length: for `partial`, how much was accepted, in UTF-16 units.
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
