"""The outcome of each suggestion, recorded once, from the user's command or from the text.

Editors differ: some report what they show, some the acceptance, some nothing, and most report it after the text has
changed. So a change that does all of a suggestion at once is its acceptance, and an outcome inferred from the text that
a late command may contradict waits a moment. What was never displayed, or too briefly to be noticed, is only counted.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from calomel.infer.completer import Kind
from calomel.suggest.offers import SEEN_SECONDS, Offer, OutcomeKind, OutcomeSink, SuppressedTracker, size
from calomel.workspace.documents import TextChange
from calomel.workspace.edits import Planned, rebase

# Continue's number, so that rates are comparable: without any action for this long, a suggestion was ignored.
NO_ACTION_SECONDS: Final = 10.0
# Editors that report an acceptance do so within this time of the text change.
GRACE_SECONDS: Final = 0.5
_REMEMBERED: Final = 32
_SLUG: Final = re.compile(r"[^a-z0-9]+")


class Ledger:
    """The suggestions of one editor; the newest of each kind and document is the visible one.

    Attributes:
        counts: of outcomes.
        held_back: the suggestions that the editor did not get.
    """

    def __init__(self, clock: Callable[[], float], sink: OutcomeSink | None) -> None:
        self._clock = clock
        self._sink = sink
        self._offers: OrderedDict[str, Offer] = OrderedDict()
        # By document, the edits that follow its visible next edit: a client may do all of them at once.
        self._following: dict[str, tuple[Planned, ...]] = {}
        self.counts: Counter[str] = Counter()
        self.held_back = SuppressedTracker(clock, sink)

    def visible(self, uri: str, kind: Kind) -> Offer | None:
        """The visible suggestion of a kind in a document, if it is open."""
        return next((offer for offer in self._open(uri) if offer.outcome.kind == kind and not offer.beside), None)

    def same(self, uri: str, kind: Kind, edits: tuple[Planned, ...]) -> Offer | None:
        """The open suggestion with these edits."""
        return next((each for each in self._open(uri) if each.outcome.kind == kind and each.edits == edits), None)

    def give(self, offer: Offer) -> None:
        """A suggestion goes to the editor and replaces those that it has, or is an alternative to them."""
        self.settle()
        if offer.outcome.kind == "edit":
            self._following.pop(offer.outcome.uri, None)
        for other in [] if offer.beside else list(self._open(offer.outcome.uri)):
            if other.outcome.kind == offer.outcome.kind and other.outcome.id != offer.outcome.id:
                self._tell(other, "superseded", "")
                other.edits = ()
        self._offers[offer.outcome.id] = offer
        while len(self._offers) > _REMEMBERED:
            _, oldest = self._offers.popitem(last=False)
            self._finish(oldest)

    def follows(self, uri: str, edits: tuple[Planned, ...]) -> None:
        """What follows the visible next edit of a document, as edits of the same text."""
        self._following[uri] = edits

    def changed(self, uri: str, change: TextChange, revision: int) -> tuple[tuple[Offer, ...], bool]:
        """Follow a change, which made `revision`. Returns what it accepts, and whether it does a part of a suggestion.

        Editors apply an edit of several places one by one.
        """
        accepted: list[Offer] = []
        following, nearer = self._following.get(uri, ()), False
        if following:
            left = rebase(following, change, kind="edit")
            nearer = left is not None and len(left) < len(following)
            self._following[uri] = left or ()
        for offer in list(self._open(uri)):
            left = rebase(offer.edits, change, kind=offer.outcome.kind)
            accepting = offer.is_accepted(change, left)
            along = left is not None and size(left) < size(offer.edits)
            nearer = nearer or along
            if not along and offer.outcome.kind == "edit":
                offer.strayed.append(revision)
            offer.edits = offer.edits if left is None else left
            if left == () and accepting:
                self._tell(offer, "accepted", "by_text")
                accepted.append(offer)
            elif not left:
                offer.gone = self._clock()
                offer.pending = "typed_against" if left is None else "typed_out"
        self.settle()
        return tuple(accepted), nearer

    def accepts(self, uri: str, change: TextChange) -> bool:
        """Whether a change accepts an open suggestion, whole words of it, or one that follows it, at once."""
        following = self._following.get(uri, ())
        left = rebase(following, change, kind="edit")
        if left is not None and len(left) < len(following):
            return True
        return any(
            offer.is_accepted(change, rebase(offer.edits, change, kind=offer.outcome.kind)) for offer in self._open(uri)
        )

    def shown(self, suggestion_id: str) -> None:
        """The editor displays the suggestion now."""
        offer = self._offers.get(suggestion_id)
        if offer is not None and offer.since is None:
            offer.since = self._clock()

    def accepted(self, suggestion_id: str) -> Offer | None:
        """The user accepted it; returns the suggestion unless that was decided already."""
        return self._decided(suggestion_id, "accepted", "by_command")

    def partly_accepted(self, suggestion_id: str, length: int, whole: int | None = None) -> Offer | None:
        """The user took the first `length` UTF-16 units of what the editor was given, which had `whole`."""
        offer = self._undecided(suggestion_id)
        if offer is None:
            return None
        # Keys may outrun the answer that has only the rest: then the length refers to the text before that.
        length -= max(0, (whole or 0) - offer.outcome.length)
        if length <= offer.taken:
            return None
        if length >= offer.outcome.length:
            return self.accepted(suggestion_id)
        offer.taken = length
        offer.pending = offer.gone = None
        self._tell(offer, "partly_accepted", "by_command")
        return offer

    def rejected(self, suggestion_id: str, reason: str | None = None) -> Offer | None:
        """The user dismissed it; returns the suggestion unless that was decided already."""
        return self._decided(suggestion_id, "rejected", slug(reason or ""))

    def ignored(self, suggestion_id: str, reason: str) -> None:
        """It disappeared without a decision."""
        offer = self._offers.get(suggestion_id)
        if offer is not None and offer.decided in {None, "partly_accepted"} and offer.pending is None:
            self._ignore(offer, slug(reason) or "unknown")
            offer.edits = ()

    def moved_away(self, uri: str, kind: Kind) -> None:
        """The cursor left the place of the visible suggestion."""
        for offer in list(self._open(uri)):
            if offer.outcome.kind == kind:
                self._ignore(offer, "moved_away")
                offer.edits = ()

    def closed(self, uri: str) -> None:
        """The document was closed."""
        self.held_back.closed(uri)
        self._following.pop(uri, None)
        for offer in [offer for offer in self._offers.values() if offer.outcome.uri == uri]:
            self._finish(offer)
            offer.edits = ()

    def settle(self) -> None:
        """Record the outcomes that have become certain."""
        now = self._clock()
        for offer in self._offers.values():
            if offer.pending is not None and offer.gone is not None and now - offer.gone >= GRACE_SECONDS:
                self._ignore(offer, offer.pending)
                offer.pending = None
            elif offer.is_open and offer.decided is None and offer.since is not None:
                self._see(offer)
                if now - offer.since >= NO_ACTION_SECONDS:
                    self._ignore(offer, "no_action")

    def close(self) -> None:
        """The session ends: settle everything that is still open."""
        self.settle()
        self.held_back.close()
        for offer in self._offers.values():
            self._finish(offer)
        self._offers.clear()

    def _undecided(self, suggestion_id: str) -> Offer | None:
        offer = self._offers.get(suggestion_id)
        return None if offer is None or offer.decided in {"accepted", "rejected"} else offer

    def _decided(self, suggestion_id: str, kind: OutcomeKind, reason: str) -> Offer | None:
        offer = self._undecided(suggestion_id)
        if offer is not None:
            offer.pending = None
            self._tell(offer, kind, reason)
        return offer

    def _open(self, uri: str) -> Iterator[Offer]:
        return (offer for offer in reversed(self._offers.values()) if offer.outcome.uri == uri and offer.is_open)

    def _finish(self, offer: Offer) -> None:
        if offer.pending is not None:
            self._ignore(offer, offer.pending)
            offer.pending = None
        elif offer.is_open and offer.decided is None:
            self._ignore(offer, "closed")

    def _see(self, offer: Offer, *, surely: bool = False) -> None:
        """Record it as shown once it was visible for a quarter of a second, or when the user decided about it."""
        if not offer.seen and (surely or self._visible_seconds(offer) >= SEEN_SECONDS):
            offer.seen = True
            self._send(offer, "shown", "")

    def _visible_seconds(self, offer: Offer) -> float:
        until = self._clock() if offer.gone is None else offer.gone
        return 0.0 if offer.since is None else max(0.0, until - offer.since)

    def _ignore(self, offer: Offer, reason: str) -> None:
        if offer.decided is None:
            self._tell(offer, "ignored", reason)

    def _tell(self, offer: Offer, kind: OutcomeKind, reason: str) -> None:
        self._see(offer, surely=kind in {"accepted", "partly_accepted", "rejected"})
        offer.decided = kind
        if offer.seen:
            self._send(offer, kind, reason)
        else:
            self.counts["unseen"] += not offer.beside

    def _send(self, offer: Offer, kind: OutcomeKind, reason: str) -> None:
        self.counts[kind] += 1
        if self._sink is not None:
            taken = {"accepted": offer.outcome.length, "partly_accepted": offer.taken}.get(kind, 0)
            seconds = self._visible_seconds(offer)
            self._sink.record(
                replace(offer.outcome, outcome=kind, reason=reason, visible_seconds=seconds, accepted_length=taken)
            )


def slug(reason: str) -> str:
    """A client's reason as a short name: editors may send anything."""
    return _SLUG.sub("_", reason.lower())[:32].strip("_")
