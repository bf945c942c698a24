"""Everything that one editor's suggestions share."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from calomel.suggest.asker import Asker
from calomel.suggest.cache import Cache
from calomel.suggest.cooldown import Cooldown
from calomel.suggest.debounce import Debounce
from calomel.suggest.document_state import DocumentState
from calomel.suggest.flight import Flight
from calomel.suggest.latency import Latency
from calomel.suggest.ledger import Ledger
from calomel.suggest.model import Model
from calomel.suggest.rejected import Rejections
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.suggestion import Answer
from calomel.suggest.switches import Switches
from calomel.workspace.longest_match import LongestMatch
from calomel.workspace.settings import SuggestSettings
from calomel.workspace.workspace import Workspace


@dataclass(slots=True)
class Tally:
    """Counts of what was answered.

    Attributes:
        requests: questions of the editor.
        asked: those that reached the model.
        cached: suggestions that needed no model.
        silences: how often each reason was the answer.
        last: how the last question was answered.
    """

    requests: int = 0
    asked: int = 0
    cached: int = 0
    silences: Counter[str] = field(default_factory=Counter)
    last: dict[str, str] | None = None

    def add(self, answer: Answer) -> None:
        """Count one answer."""
        if isinstance(answer, Silence):
            self.silences[str(answer.reason)] += 1
            if answer.reason is not SilenceReason.SUPERSEDED:
                self.last = {"reason": str(answer.reason), "message": answer.message}
        else:
            self.cached += answer.cached
            self.last = {"shown": answer.id}


@dataclass(slots=True)
class Session:
    """One editor: what is open, what was asked, offered and decided, and the ways to ask."""

    workspace: Workspace
    settings: SuggestSettings
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    rng: random.Random
    model: Model
    asker: Asker
    ledger: Ledger
    cooldown: Cooldown
    debounce: Debounce
    switches: Switches
    matches: LongestMatch = field(default_factory=LongestMatch)
    flight: Flight = field(default_factory=Flight)
    cache: Cache = field(default_factory=Cache)
    rejections: Rejections = field(default_factory=Rejections)
    latency: Latency = field(default_factory=Latency)
    tally: Tally = field(default_factory=Tally)
    states: dict[str, DocumentState] = field(default_factory=dict)

    def state(self, uri: str) -> DocumentState:
        """What is kept of a document."""
        return self.states.setdefault(uri, DocumentState(self.clock))
