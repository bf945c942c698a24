"""What the server answered lately: a client that tells what became of an answer knows its id and nothing else."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from calomel.suggest.completer import Kind
from calomel.suggest.outcome_signals import OutcomeSignals

# An editor decides within minutes; a team of a hundred asks so often within a quarter of an hour.
_KEPT: Final = 4096


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


class Deliveries:
    """The last answers by completion id. Used from the event loop alone."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._by_id: OrderedDict[str, Delivered] = OrderedDict()

    def remember(self, completion_id: str, delivered: Delivered) -> None:
        """Keep one; the oldest is forgotten."""
        self._by_id[completion_id] = delivered
        while len(self._by_id) > self._kept:
            self._by_id.popitem(last=False)

    def find(self, completion_id: str) -> Delivered | None:
        """The answer of this id, if it is not forgotten."""
        return self._by_id.get(completion_id)
