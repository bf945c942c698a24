"""A suggestion given to the editor, one that was held back, and the outcomes recorded for either.

A suggestion that was held back is followed as if it had been shown, so that the filter can learn from it too. The same
rules apply: one that would have disappeared before anybody noticed is not counted, and typing along keeps it the same
suggestion. Besides, the user may take detours: what counts is that the text eventually has all of it at its place.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, Self

from calomel.code.names import is_word
from calomel.infer.completer import Kind
from calomel.prompts.parts import line_end, line_start
from calomel.suggest.signals import OutcomeSignals
from calomel.workspace.documents import Document, LoggedChange, Origin, TextChange
from calomel.workspace.edits import Planned, edits_of, joined, rebase

OutcomeKind = Literal["shown", "accepted", "partly_accepted", "rejected", "ignored", "superseded", "withheld", "typed"]

# Continue's number, so that rates are comparable: what is visible for less counts as not seen.
SEEN_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class Outcome:
    """One event in a suggestion's life. `text` and `uri` contain the user's text.

    Attributes:
        id: of the suggestion. The last decision counts: one ignored for ten seconds may still be accepted.
        outcome: `shown` once it was visible for a quarter of a second; partial acceptance repeats with growing length.
            `withheld` instead of `shown` when it was held back, and `typed` if the user then typed all of it by hand;
            if it is shown after all, it keeps its id.
        reason: a short name, empty if there is nothing to add: `by_text` or `by_command` for an acceptance,
            `no_action`, `typed_against`, `typed_out`, `moved_away`, `closed` or the editor's own for `ignored`, the
            reason of the silence for `withheld` and `typed`.
        kind: `fill` or `edit`.
        uri: of the document.
        language_id: of the document.
        trigger: what made the editor ask.
        model: that generated it.
        probability: the calibrator's.
        visible_seconds: since the editor displayed it; 0 if unknown.
        length: of its insert text, in UTF-16 units.
        accepted_length: how much of it the user took.
        text: its insert text.
        signals: what was known of it before it was shown.
        maker: who proposed it, as in `Candidate.maker`.
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


class OutcomeSink(Protocol):
    """Records outcomes."""

    def record(self, outcome: Outcome) -> None:
        """Record one. Fast; never raises."""


# Characters; a place that has grown beyond this is given up.
_LARGEST_PLACE: Final = 8_000


@dataclass(slots=True)
class SuggestionPlace:
    """A range of the text, and what a suggestion would turn it into.

    Attributes:
        start: offset.
        now: its current text.
        wanted: its text with the suggestion.
        inserts: the suggestion only inserts, at one place, so any text may follow what is wanted.
    """

    start: int
    now: str
    wanted: str
    inserts: bool

    @classmethod
    def of(cls, text: str, edits: Sequence[Planned]) -> Self:
        """From the first of `edits`, which are of `text` and at least one, to the last."""
        start, end, wanted = joined(text, edits_of(edits))
        return cls(start, text[start:end], wanted, inserts=len(edits) == 1 and start == end)

    @classmethod
    def with_lines(cls, text: str, edits: Sequence[Planned]) -> Self:
        """From the line above the first of `edits` to the one below the last."""
        start, end, wanted = joined(text, edits_of(edits))
        low, high = line_start(text, start), line_end(text, end)
        low = line_start(text, low - 1 - (text[low - 2 : low] == "\r\n")) if low else 0
        high = line_end(text, high + 1 + (text[high : high + 2] == "\r\n"))
        return cls(low, text[low:high], text[low:start] + wanted + text[end:high], inserts=False)

    @property
    def holds(self) -> bool:
        """Whether the wanted text is there."""
        return self.now.startswith(self.wanted) if self.inserts else self.now == self.wanted

    @property
    def is_lost(self) -> bool:
        """Whether it has grown too large."""
        return max(len(self.now), len(self.wanted)) > _LARGEST_PLACE

    def changed(self, change: TextChange) -> bool:
        """Follow a change. Whether it touched the place, which then covers all that the change replaced."""
        low, high = self.start, self.start + len(self.now)
        if change.start > high:
            return False
        if change.end < low:
            self.start += len(change.inserted) - len(change.removed)
            return False
        if change.start < low or change.end > high:
            left, right = max(0, low - change.start), max(0, change.end - high)
            before, after = change.removed[:left], change.removed[len(change.removed) - right :]
            self.start -= left
            self.now = before + self.now + after
            self.wanted = before + self.wanted + after
        at = change.start - self.start
        self.now = self.now[:at] + change.inserted + self.now[at + len(change.removed) :]
        return True

    def same(self, other: SuggestionPlace, text: str) -> bool:
        """Whether two places of `text` would turn it into the same text."""
        low = min(self.start, other.start)
        high = max(self.start + len(self.now), other.start + len(other.now))
        return self._whole(text, low, high) == other._whole(text, low, high)

    def _whole(self, text: str, low: int, high: int) -> str:
        return text[low : self.start] + self.wanted + text[self.start + len(self.now) : high]


_STRAYED: Final = 64
# The most characters from one keystroke: two, since editors close brackets automatically.
_MOST_BY_HAND: Final = 2


@dataclass(slots=True)
class Offer:
    """A suggestion given to the editor.

    Attributes:
        outcome: the template of its outcomes; its text is the last insert text given to the editor. Its id stays the
            same while the user types into it.
        edits: what is left of it, as edits of the current text; empty when all is done.
        since: when the editor displayed it; None if unknown.
        gone: when it disappeared; None while it may be visible.
        seen: it was visible long enough to be noticed, and that was recorded.
        taken: UTF-16 units of its text that were accepted in parts.
        decided: the last outcome recorded; None while it is open.
        pending: why it will count as ignored in a moment, unless the user decides before.
        beside: it is an alternative to another one.
        strayed: the last revisions that were made beside it: if one of them went on with the edit that it followed
            from, it is outdated.
    """

    outcome: Outcome
    edits: tuple[Planned, ...]
    since: float | None = None
    gone: float | None = None
    seen: bool = False
    taken: int = 0
    decided: OutcomeKind | None = None
    pending: str | None = None
    beside: bool = False
    strayed: deque[int] = field(default_factory=lambda: deque(maxlen=_STRAYED))

    @property
    def is_open(self) -> bool:
        """Whether the user may still be looking at it."""
        return bool(self.edits) and self.pending is None and self.decided in {None, "partly_accepted", "ignored"}

    def is_accepted(self, change: TextChange, left: tuple[Planned, ...] | None) -> bool:
        """Whether `change`, which leaves `left`, must be an acceptance: of all of it, or of whole words, at once."""
        by_hand = max(len(change.inserted), len(change.removed)) <= _MOST_BY_HAND
        if by_hand or left is None or size(left) >= size(self.edits):
            return False
        return len(left) < len(self.edits) or (
            len(left) == len(self.edits) and _ends_word(self.edits[0].text, left[0].text)
        )


def size(edits: tuple[Planned, ...]) -> int:
    """Characters that edits remove and insert."""
    return sum(len(edit.text) + len(edit.removed) for edit in edits)


def _ends_word(whole: str, left: str) -> bool:
    """Whether what was taken from the start of `whole` ends at the end of a word or line."""
    taken = whole[: len(whole) - len(left)]
    if not taken.strip() or not left:
        return False
    return not (is_word(taken[-1]) and is_word(left[0]))


@dataclass(slots=True)
class Withheld:
    """A suggestion that was held back.

    Attributes:
        outcome: the template of its outcomes; its reason is why it was held back.
        place: where it belongs.
        left: what is left of its edits, until it is clear whether it would have been noticed.
        revision: of the document, that place and edits belong to.
        since: time of the clock at which it would have been shown.
        keys: changes that the user typed into the document since.
        noticed: it would have been visible for long enough.
        is_recorded: `withheld` was recorded.
        typed: the user typed it.
        is_over: nothing can change its outcome any more.
    """

    outcome: Outcome
    place: SuggestionPlace
    left: tuple[Planned, ...]
    revision: int
    since: float
    keys: int = 0
    noticed: bool = False
    is_recorded: bool = False
    typed: bool = False
    is_over: bool = False


LOG: Final = logging.getLogger(__name__)

# It is followed until both limits are exceeded: the time (a pause for thought) and the keys (a line or two).
FOLLOWED_SECONDS: Final = 30.0
FOLLOWED_KEYS: Final = 40
# Per editor; the oldest is dropped. Each pause in the typing makes one, so this many cover more than a minute.
_FOLLOWED: Final = 16
_OWN: Final = frozenset({Origin.TYPED, Origin.UNDO, Origin.REDO})


class SuppressedTracker:
    """The withheld suggestions of one editor, each counted once however often it recurs."""

    def __init__(self, clock: Callable[[], float], sink: OutcomeSink | None) -> None:
        self._clock = clock
        self._sink = sink
        self._followed: list[Withheld] = []
        self._by_reason: Counter[str] = Counter()
        self._by_maker: Counter[str] = Counter()
        self._typed: Counter[str] = Counter()
        self._last: dict[str, Any] | None = None

    def report(self) -> dict[str, Any]:
        """Counts by reason and by maker, by reason of those then `typed` by hand, and the `last` one."""
        self.settle()
        counts = {"by_reason": self._by_reason, "by_maker": self._by_maker, "typed": self._typed}
        return {**{name: dict(count) for name, count in counts.items()}, "last": self._last}

    def hold(self, outcome: Outcome, edits: Sequence[Planned], document: Document, threshold: float) -> None:
        """Start to follow a suggestion, unless it is followed already.

        Args:
            outcome: the template of its outcomes.
            edits: of the document's text, at least one.
            document: that it is for.
            threshold: of its language.
        """
        self.follow(document)
        self.settle()
        text = document.text
        place = SuggestionPlace.of(text, edits)
        if self._find(outcome.uri, outcome.kind, place, text) is not None:
            return
        self._followed.append(Withheld(outcome, place, tuple(edits), document.revision, self._clock()))
        while len(self._followed) > _FOLLOWED:
            self._tell(self._followed.pop(0))
        self._by_reason[outcome.reason] += 1
        self._by_maker[outcome.maker or "unknown"] += 1
        self._last = {name: getattr(outcome, name) for name in ("reason", "kind", "maker", "probability")}
        self._last["threshold"] = threshold
        LOG.debug(
            "withheld: %s, %s by %s, probability %.3f, threshold %.2f, %d characters in %d edits",
            outcome.reason,
            outcome.kind,
            outcome.maker or "unknown",
            outcome.probability,
            threshold,
            outcome.length,
            len(edits),
        )

    def taken_over(self, document: Document, kind: Kind, edits: Sequence[Planned]) -> str | None:
        """Stop following a suggestion that will be shown now; returns its id if it was recorded as withheld."""
        self.follow(document)
        text = document.text
        item = self._find(document.uri, kind, SuggestionPlace.of(text, edits), text)
        if item is None:
            return None
        self._notice(item, self._clock())
        self._tell(item)
        self._followed.remove(item)
        return item.outcome.id if item.is_recorded else None

    def follow(self, document: Document) -> None:
        """Take in what was changed in a document since the suggestions were held back."""
        for item in self._followed:
            if item.is_over or item.outcome.uri != document.uri:
                continue
            changes = document.since(item.revision)
            item.revision, item.is_over = document.revision, changes is None
            for each in changes or ():
                self._changed(item, each)

    def _changed(self, item: Withheld, logged: LoggedChange) -> None:
        if not item.is_over:
            change, origin = logged.change, logged.origin
            item.keys += origin is Origin.TYPED
            if not self._notice(item, logged.when):
                item.left = rebase(item.left, change, kind=item.outcome.kind) or ()
                item.is_over = not item.left
            if item.place.changed(change):
                item.typed = origin is Origin.TYPED and item.place.holds and not item.is_over
                # What another suggestion, an undo or a formatter put there was not typed by the user.
                item.is_over |= item.place.holds or item.place.is_lost or origin not in _OWN

    def settle(self) -> None:
        """Record the outcomes that have become certain."""
        now = self._clock()
        for item in self._followed:
            if not item.is_over:
                self._notice(item, now)
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

    def _find(self, uri: str, kind: Kind, place: SuggestionPlace, text: str) -> Withheld | None:
        followed = (each for each in self._followed if each.outcome.uri == uri and each.outcome.kind == kind)
        return next((each for each in followed if not each.is_over and each.place.same(place, text)), None)

    def _notice(self, item: Withheld, now: float) -> bool:
        item.noticed = item.noticed or now - item.since >= SEEN_SECONDS
        return item.noticed

    def _tell(self, item: Withheld) -> None:
        if not item.noticed:
            return
        if not item.is_recorded:
            item.is_recorded = True
            self._send(item.outcome)
        if item.typed:
            # Its signals are in the `withheld` line.
            self._typed[item.outcome.reason] += 1
            self._send(replace(item.outcome, outcome="typed", signals=None))

    def _send(self, outcome: Outcome) -> None:
        if self._sink is not None:
            self._sink.record(outcome)
