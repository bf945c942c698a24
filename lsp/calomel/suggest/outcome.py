"""What became of a suggestion, as it is told once to whoever keeps the outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from calomel.suggest.completer import CompleteRequest, Kind
from calomel.suggest.outcome_signals import OutcomeSignals

OutcomeKind = Literal["shown", "accepted", "partly_accepted", "rejected", "ignored", "superseded", "withheld", "typed"]

# Continue's number, so that rates compare: what is visible for less is not seen.
SEEN_SECONDS: Final = 0.25

# The reason of an acceptance that the client's next prompt showed. Such clients tell of nothing else.
BY_PROMPT: Final = "by_prompt"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One event in a suggestion's life. `text`, `proposed`, `request` and `uri` hold words of the user's.

    Attributes:
        id: of the suggestion. Its last decision counts: who ignored it for ten seconds may accept it after all.
        outcome: `shown` once it was visible for a quarter of a second; partial acceptance repeats with growing length.
            `withheld` in place of `shown` when it was held back, and `typed` if the user then wrote all of it by hand;
            one that is shown after all keeps its id.
        reason: a short name, empty where there is nothing to add: `by_text`, `by_command` or, of clients that only mark
            it in their next prompt, `by_prompt` for an acceptance, `no_action`, `typed_against`, `typed_out`,
            `moved_away`, `closed` or the editor's own for `ignored`, the reason of the silence for `withheld` and
            `typed`.
        kind: `fill` or `edit`.
        uri: of the document.
        language_id: of the document.
        trigger: what made the editor ask.
        model: that made it.
        probability: what the gate said.
        visible_seconds: since the editor displayed it; 0 when that is not known.
        length: of its insert text, in UTF-16 units.
        accepted_length: how much of it the user took.
        text: its insert text.
        signals: numbers about it, from before it was shown.
        maker: who proposed it, as in `Candidate.maker`.
        request: what the model was asked, secrets masked.
        proposed: the maker's own text.
    """

    id: str
    outcome: OutcomeKind
    reason: str
    kind: Kind
    uri: str
    language_id: str
    trigger: str
    model: str
    probability: float
    visible_seconds: float
    length: int
    accepted_length: int
    text: str
    signals: OutcomeSignals | None = None
    maker: str = ""
    request: CompleteRequest | None = None
    proposed: str = ""


class OutcomeSink(Protocol):
    """Keeps outcomes."""

    def record(self, outcome: Outcome) -> None:
        """Keep one. Fast; never raises."""
