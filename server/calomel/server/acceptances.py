"""What was accepted, of those clients that never say so but mark it in the edits of their next prompts.

Zed writes `// User accepted prediction:` above such an edit. It says nothing of what was rejected, ignored or never
shown, and nothing is made up about that: an answer that is found in no later prompt stays unknown.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from calomel.prompts.edit_prompt import same_file
from calomel.prompts.parts import Hunk
from calomel.server.deliveries import Deliveries
from calomel.suggest.outcome import BY_PROMPT

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
