"""What the recorded assistant offered, each suggestion once.

While a person types along, the editor asks at each key and gets the rest of the same suggestion: an offer that leads to
the same text as the one before it is the same suggestion.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from calomel.replay.events import Accepted, Changed, Event, Offered, Opened, apply_edits


@dataclass(slots=True)
class Suggested:
    """One suggestion of the recorded assistant.

    Attributes:
        offer: the first time it was offered.
        before: the text of the document then.
        after: the text that it leads to.
        offers: how often it came, typing along.
        until: seconds at which it was gone: the text changed and it did not come again, or another one took its place.
        accepted: the person took it, by the log's own word.
        partly: the person took a word or a line of it, by the log's own word; of one suggestion maybe several times.
    """

    offer: Offered
    before: str
    after: str
    offers: int
    until: float
    accepted: bool = False
    partly: bool = False

    @property
    def visible_seconds(self) -> float:
        """How long it may have been on the screen at most; the log does not say that it was drawn."""
        return self.until - self.offer.time


def distinct_offers(events: Iterable[Event]) -> list[Suggested]:
    """The suggestions of a recording, in order of their first offer. Of one answer all are taken, each for itself."""
    reader = _Reader()
    time = 0.0
    for event in events:
        reader.read(event)
        time = event.time
    reader.end(time)
    return reader.found


class _Reader:
    def __init__(self) -> None:
        self.found: list[Suggested] = []
        self._texts: dict[str, str] = {}
        # By document: those of the last answer, on the screen; and those that went with the last change or answer,
        # which the next one may bring again.
        self._current: dict[str, list[Suggested]] = {}
        self._gone: dict[str, list[Suggested]] = {}
        self._requests: dict[str, str] = {}

    def read(self, event: Event) -> None:
        document = event.document
        if isinstance(event, Opened):
            self._texts[document] = event.text
            self._hide(document, event.time)
            self._gone.pop(document, None)
        elif isinstance(event, Changed):
            self._texts[document] = apply_edits(self._texts[document], event.edits)
            self._hide(document, event.time)
        elif isinstance(event, Accepted):
            self._accept(event)
        elif isinstance(event, Offered):
            self._offer(event)

    def end(self, time: float) -> None:
        for document in list(self._current):
            self._hide(document, time)

    def _hide(self, document: str, time: float) -> None:
        shown = self._current.pop(document, [])
        for each in shown:
            each.until = max(each.until, time)
        if shown:
            self._gone[document] = shown

    def _accept(self, event: Accepted) -> None:
        after = apply_edits(self._texts[event.document], event.edits)
        shown = [*self._current.get(event.document, []), *self._gone.get(event.document, [])]
        whole = next((each for each in shown if each.after == after), None)
        if whole is not None:
            whole.accepted = True
            return
        taken = after[: event.edits[-1].start + len(event.edits[-1].text)] if len(event.edits) == 1 else after
        part = next((each for each in shown if each.after.startswith(taken)), None)
        if part is not None:
            part.partly = True

    def _offer(self, event: Offered) -> None:
        document = event.document
        if self._requests.get(document) != event.request:
            self._requests[document] = event.request
            self._hide(document, event.time)
        text = self._texts[document]
        after = apply_edits(text, event.edits)
        known = next((each for each in self._gone.get(document, []) if each.after == after), None)
        if known is None:
            known = Suggested(event, text, after, 0, event.time)
            self.found.append(known)
        known.offers += 1
        known.until = event.time
        self._current.setdefault(document, []).append(known)
