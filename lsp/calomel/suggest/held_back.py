"""Follows what was held back: had it been shown, would it have been accepted?

So the log alone tells what another threshold would have done. The rules are those of what is shown, so that both
compare: what would have been gone before anybody noticed it is not counted, typing along keeps it the same suggestion.
Beyond that the user may take detours: what counts is that the text comes to hold all of it at its place.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from calomel.suggest.completer import Kind
from calomel.suggest.outcome import SEEN_SECONDS, Outcome, OutcomeSink
from calomel.suggest.planned import Change, Planned
from calomel.suggest.rebase import MAX_AGREEMENT_OFFSET, rebase
from calomel.suggest.status import LastWithheld, WithheldReport
from calomel.suggest.withheld import Place, Withheld
from calomel.workspace.history import Origin

LOG: Final = logging.getLogger(__name__)

# It is followed for as long as the longer of both lasts: a pause for thought, or a line or two of typing.
FOLLOWED_SECONDS: Final = 30.0
FOLLOWED_KEYS: Final = 40
# Of one editor. The oldest gives way; a pause in the typing makes one, so this many are more than a minute's.
_FOLLOWED: Final = 16
_OWN: Final = frozenset({Origin.TYPED, Origin.UNDO, Origin.REDO})


class HeldBack:
    """The withheld suggestions of one editor."""

    def __init__(self, clock: Callable[[], float], sink: OutcomeSink | None) -> None:
        self._clock = clock
        self._sink = sink
        self._followed: list[Withheld] = []
        self._by_reason: Counter[str] = Counter()
        self._by_maker: Counter[str] = Counter()
        self._typed: Counter[str] = Counter()
        self._last: LastWithheld | None = None

    def report(self) -> WithheldReport:
        """How many there were, and the latest one."""
        return WithheldReport(dict(self._by_reason), dict(self._by_maker), dict(self._typed), self._last)

    def hold(self, outcome: Outcome, edits: Sequence[Planned], text: str, threshold: float | None) -> bool:
        """Follow one from now on; False when it is one that is followed already.

        Args:
            outcome: what to tell of it.
            edits: of `text`, at least one.
            text: of the document, as it is now.
            threshold: that it did not reach, where there is one.
        """
        self.settle()
        place = Place.of(text, edits)
        if self._find(outcome.uri, outcome.kind, place, text) is not None:
            return False
        self._followed.append(Withheld(outcome, place, tuple(edits), self._clock()))
        while len(self._followed) > _FOLLOWED:
            self._tell(self._followed.pop(0))
        self._by_reason[outcome.reason] += 1
        self._by_maker[outcome.maker or "unknown"] += 1
        self._last = LastWithheld(outcome.reason, outcome.kind, outcome.maker, outcome.probability, threshold)
        LOG.debug(
            "withheld: %s, %s by %s, probability %.3f, threshold %s, %d characters in %d edits",
            outcome.reason,
            outcome.kind,
            outcome.maker or "unknown",
            outcome.probability,
            "none" if threshold is None else f"{threshold:.2f}",
            outcome.length,
            len(edits),
        )
        return True

    def taken_over(self, uri: str, kind: Kind, edits: Sequence[Planned], text: str) -> str | None:
        """The id under which a suggestion that is to be shown was held back before, which is followed no longer."""
        item = self._find(uri, kind, Place.of(text, edits), text)
        if item is None:
            return None
        self._notice(item)
        self._tell(item)
        self._followed.remove(item)
        return item.outcome.id if item.told else None

    def changed(self, uri: str, change: Change, origin: Origin) -> None:
        """Go along with a change of a document. Writes nothing: this is on the way of a keystroke."""
        for item in self._followed:
            if item.is_over or item.outcome.uri != uri:
                continue
            item.keys += origin is Origin.TYPED
            if not self._notice(item):
                item.left = rebase(item.left, change, max_offset=_offset(item)) or ()
                item.is_over = not item.left
            if item.place.changed(change):
                item.typed = origin is Origin.TYPED and item.place.holds and not item.is_over
                # What another suggestion, an undo or a formatter put there is not the user's own typing.
                item.is_over |= item.place.holds or item.place.is_lost or origin not in _OWN

    def settle(self) -> None:
        """Tell what has become certain by now."""
        now = self._clock()
        for item in self._followed:
            if not item.is_over:
                self._notice(item)
                item.is_over = now - item.since >= FOLLOWED_SECONDS and item.keys >= FOLLOWED_KEYS
            self._tell(item)
        self._followed = [item for item in self._followed if not item.is_over]

    def closed(self, uri: str) -> None:
        """A document was closed."""
        self.settle()
        self._followed = [item for item in self._followed if item.outcome.uri != uri]

    def close(self) -> None:
        """The session ends."""
        self.settle()
        self._followed.clear()

    def _find(self, uri: str, kind: Kind, place: Place, text: str) -> Withheld | None:
        followed = (each for each in self._followed if each.outcome.uri == uri and each.outcome.kind == kind)
        return next((each for each in followed if not each.is_over and each.place.same(place, text)), None)

    def _notice(self, item: Withheld) -> bool:
        item.noticed = item.noticed or self._clock() - item.since >= SEEN_SECONDS
        return item.noticed

    def _tell(self, item: Withheld) -> None:
        if not item.noticed:
            return
        if not item.told:
            item.told = True
            self._send(item.outcome)
        if item.typed:
            # Its numbers stand in the line before.
            self._typed[item.outcome.reason] += 1
            self._send(replace(item.outcome, outcome="typed", signals=None, request=None))

    def _send(self, outcome: Outcome) -> None:
        if self._sink is not None:
            self._sink.record(outcome)


def _offset(item: Withheld) -> int:
    return MAX_AGREEMENT_OFFSET if item.outcome.kind == "edit" else 0
