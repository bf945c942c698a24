"""What the server answered lately, and what became of it: by feedback, or by the marks in a client's next prompts."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from calomel.prompts.edit_prompt import same_file
from calomel.prompts.parts import Hunk
from calomel.suggest.completer import Kind
from calomel.suggest.offers import BY_PROMPT, Outcome, OutcomeKind, OutcomeSink
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
        shown = known.shown
        taken = shown.length if action == "accept" else min(accepted_length, shown.length) if action == "partial" else 0
        if known.last == (action, taken):
            return
        if known.last is None:
            self._outcomes.record(shown)
        known.last = action, taken
        known.decisions += 1
        self._outcomes.record(replace(shown, outcome=_OUTCOMES[action], reason=reason, accepted_length=taken))


# A person decides within minutes.
_LATELY: Final = 900.0
_OFFERS: Final = 64
_CLIENTS: Final = 256

# Path, what was there, what is there now.
_Change = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Offer:
    """An edit that was delivered, as changes of whole lines."""

    completion_id: str
    changes: tuple[Hunk, ...]
    at: float


@dataclass(slots=True)
class _Client:
    """What is known of one client: the last offers that nothing has been heard of, and its last prompt's marks."""

    offers: deque[_Offer] = field(default_factory=lambda: deque(maxlen=_OFFERS))
    marked: Counter[_Change] = field(default_factory=Counter)


class Acceptances:
    """Finds delivered edits again among those that were accepted. Used from the event loop alone.

    Args:
        deliveries: is told.
        clock: monotonic seconds.
    """

    def __init__(self, deliveries: Deliveries, clock: Callable[[], float] = time.monotonic) -> None:
        self._deliveries = deliveries
        self._clock = clock
        self._clients: OrderedDict[str, _Client] = OrderedDict()

    def offered(self, client: str, completion_id: str, changes: Sequence[Hunk]) -> None:
        """An edit goes to a client."""
        if changes:
            self._client(client).offers.append(_Offer(completion_id, tuple(changes), self._clock()))

    def seen(self, client: str, edits: Sequence[Hunk]) -> None:
        """A prompt of a client shows its last edits, oldest first: those that it had not marked before count once."""
        known = self._client(client)
        accepted = [edit for edit in edits if edit.predicted]
        marked = Counter(map(_change, accepted))
        new = marked - known.marked
        known.marked = marked
        for edit in reversed(accepted):
            if new[_change(edit)] > 0:
                new[_change(edit)] -= 1
                self._decide(known, edit)

    def _decide(self, known: _Client, edit: Hunk) -> None:
        """The newest offer of this edit was accepted; older ones of the same were replaced by it."""
        oldest = self._clock() - _LATELY
        for offer in reversed(known.offers):
            if offer.at >= oldest and any(_holds(edit, change) for change in offer.changes):
                known.offers.remove(offer)
                self._deliveries.decided(offer.completion_id, "accept", reason=BY_PROMPT)
                return

    def _client(self, name: str) -> _Client:
        found = self._clients.setdefault(name, _Client())
        self._clients.move_to_end(name)
        while len(self._clients) > _CLIENTS:
            self._clients.popitem(last=False)
        return found


def _change(edit: Hunk) -> _Change:
    return edit.path, edit.before, edit.after


def _holds(edit: Hunk, change: Hunk) -> bool:
    """Whether an accepted edit is the change that was offered.

    The beginning may have been typed before the rest was accepted, and accepted edits on neighbouring lines are told
    as one: so what is there now counts, and for a deletion what was there.
    """
    if not same_file(edit.path, change.path):
        return False
    if change.after.strip():
        return _within(change.after, edit.after) and not _within(change.after, edit.before)
    return _within(change.before, edit.before) and not _within(change.before, edit.after)


def _within(lines: str, text: str) -> bool:
    """Whether whole lines stand in a text, one after the other."""
    return f"\n{lines.removesuffix(chr(10))}\n" in f"\n{text.removesuffix(chr(10))}\n"
