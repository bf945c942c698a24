"""The part of a context before the window. It is chosen once and stays, cached, until choosing anew pays.

Related code comes first, so changing it means encoding everything after it again; and what an index finds changes with
the words around the cursor. Hence the front changes with the window, not with the keystroke.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from calomel.context.budget import HOP_TOKENS, MARKS, Budget, TokenCounter
from calomel.context.window import Change, Snapshot, Window, carry_over, take
from calomel.prompts.parts import Excerpt, Hunk
from calomel.workspace.workspace import Situation

# This share of the related code that would be chosen now, in tokens, must be in the front already.
_RELATED_SHARE: Final = 0.5
# A snapshot with a larger share of changed text misleads more than its cached tokens save.
_CHANGED_SHARE: Final = 0.25
# Characters per token on average, at most: longer texts are not even counted.
_LONGEST: Final = 12
# A stream that starts anew leaves room to grow.
_STREAM_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Front:
    """What was chosen, and what happened since.

    Attributes:
        related: the most useful one last.
        left_out: how many related excerpts did not fit.
        snapshot: of the current file; None when the window held the whole file, or the budget is small.
        first_edit: the hunk that the stream begins with.
        hops: of the stream's own beginning, at that moment.
        changed: characters inserted and removed in the file since the snapshot; text typed and deleted again counts,
            so this is an upper bound of the difference.
        why: the reason for choosing it.
    """

    related: tuple[Excerpt, ...]
    left_out: int
    snapshot: Snapshot | None
    first_edit: int
    hops: int
    changed: int = 0
    why: str = "first use"

    def after(self, change: Change) -> Front:
        """The same front after a change of the file."""
        low, high, new_high = change
        snapshot = self.snapshot
        if snapshot is None:
            return self
        span = carry_over(snapshot.span, change) or _shrunk(snapshot.span, change)
        return replace(self, snapshot=replace(snapshot, span=span), changed=self.changed + high - low + new_high - low)

    @property
    def far(self) -> tuple[Excerpt, ...]:
        """The snapshot's text."""
        return () if self.snapshot is None else self.snapshot.excerpts


def choose(
    fronts: Sequence[Front],
    situation: Situation,
    window: Window,
    shares: Budget,
    counter: TokenCounter,
    *,
    stays: bool,
) -> Front:
    """The front for `window`: one of `fronts`, the first that still serves, else a new one.

    This is the one rule about when the beginning of a prompt changes:

    * While the user only looks at code outside the snapshot, without a settled edit there, all of it stays: the
      answer waits only for the window, and the code that was worked on is there when the cursor comes back.
    * Related code stays as long as the window does (`stays`). When the window moves, it stays if it holds at least half
      of what would be chosen now. Otherwise everything is chosen anew.
    * Snapshot and stream stay while the window is inside the snapshot, the lines changed since are at most a quarter of
      the snapshot, and the stream still has its beginning and fits its room. Otherwise both start anew: what the stream
      drops is in the new snapshot. Related code, which comes before them, stays.
    """
    why = ""
    keeps_related: Front | None = None
    for front in fronts:
        kept = (stays and front.related) or _only_looks(front.snapshot, window, situation)
        if not kept and not _serves_related(front, situation.related, shares, counter):
            why = why or "other code matters here"
            continue
        found = _worn(front, situation, window, shares, counter)
        if not found:
            return front
        why, keeps_related = (why or found), (keeps_related or front)
    return _chosen(keeps_related, situation, window, shares, counter, why or "first use")


def _worn(front: Front, situation: Situation, window: Window, shares: Budget, counter: TokenCounter) -> str:
    """Why snapshot and stream have to be replaced; empty while they serve."""
    if front.hops != situation.hops:
        return "older edits were let go"
    stream = counter.edits(situation.hunks[front.first_edit :])
    if stream > shares.edits:
        return "the edits outgrew their room"
    snapshot = front.snapshot
    if snapshot is None:
        if shares.far and not window.is_whole(situation.text):
            return "the file outgrew the window"
    elif not snapshot.holds(window) and not _only_looks(snapshot, window, situation):
        return "the edits left the snapshot"
    elif front.changed > (most := _CHANGED_SHARE * len(snapshot)) and snapshot.changed(situation.text) > most:
        return "a quarter of the snapshot was rewritten"
    taken = counter.excerpts(front.related) + counter.excerpts(front.far) + stream
    left = shares.total - MARKS - taken
    text, offset = situation.text, situation.offset
    needed = counter.text(text[window.start : offset]) + counter.text(text[offset : window.end])
    return "" if left >= needed else "the window needs the room"


def _only_looks(snapshot: Snapshot | None, window: Window, situation: Situation) -> bool:
    """Whether the cursor has left the snapshot, but the last edit of this file is inside it."""
    if snapshot is None or snapshot.holds(window):
        return False
    last = situation.hunks[-1] if situation.hunks else None
    if last is None or last.path != situation.path:
        return True
    first = situation.text.count("\n", 0, snapshot.span.start)
    return first <= last.start_line <= first + situation.text.count("\n", snapshot.span.start, snapshot.span.end)


def _chosen(
    kept: Front | None, situation: Situation, window: Window, shares: Budget, counter: TokenCounter, why: str
) -> Front:
    """A new front; with the related code of `kept`, if there is one."""
    room = shares.total - MARKS - shares.edits - _reserve(situation.text, shares, counter)
    wants_far = bool(shares.far) and not window.is_whole(situation.text)
    snapshot = None
    if kept is not None and counter.excerpts(kept.related) <= room - (shares.far if wants_far else 0) // 2:
        related, left_out = kept.related, kept.left_out
    else:
        if wants_far:
            snapshot = _taken(situation, window, min(shares.far, room), counter)
        far = 0 if snapshot is None else counter.excerpts(snapshot.excerpts)
        related, left_out = _useful(situation.related, room - far, counter)
    left = room - counter.excerpts(related)
    if wants_far and (snapshot is None or not snapshot.span.is_whole(situation.text)):
        # The file gets what other code leaves.
        snapshot = _taken(situation, window, left, counter)
    first = _newest(situation.hunks, int(shares.edits * _STREAM_SHARE), counter)
    return Front(related, left_out, snapshot, first, situation.hops, why=why)


def _taken(situation: Situation, window: Window, room: int, counter: TokenCounter) -> Snapshot | None:
    return take(situation.path or "", situation.text, window, room, counter, situation.blocks)


def _useful(excerpts: tuple[Excerpt, ...], room: int, counter: TokenCounter) -> tuple[tuple[Excerpt, ...], int]:
    """The most useful excerpts that fit (the last ones), each whole, and how many do not fit."""
    kept: list[Excerpt] = []
    for excerpt in reversed(excerpts):
        if len(excerpt.text) > room * _LONGEST:
            continue
        tokens = counter.excerpts((excerpt,))
        if tokens <= room:
            kept.append(excerpt)
            room -= tokens
    return tuple(reversed(kept)), len(excerpts) - len(kept)


def _serves_related(front: Front, wanted: tuple[Excerpt, ...], shares: Budget, counter: TokenCounter) -> bool:
    if wanted == front.related:
        return True
    room = max(counter.excerpts(front.related), shares.related)
    chosen, _ = _useful(wanted, room, counter)
    needed = [counter.excerpts((excerpt,)) for excerpt in chosen]
    known = sum(tokens * _covered(excerpt, front.related) for tokens, excerpt in zip(needed, chosen, strict=True))
    return known >= _RELATED_SHARE * sum(needed)


def _covered(excerpt: Excerpt, known: tuple[Excerpt, ...]) -> float:
    """The share of the excerpt's lines that other excerpts contain."""
    start, end = _lines(excerpt)
    common = 0
    for other in known:
        if other.path == excerpt.path:
            first, last = _lines(other)
            common += max(0, min(end, last) - max(start, first))
    return min(1.0, common / (end - start))


def _lines(excerpt: Excerpt) -> tuple[int, int]:
    return excerpt.start_line, excerpt.start_line + max(1, excerpt.text.count("\n"))


def _newest(hunks: tuple[Hunk, ...], room: int, counter: TokenCounter) -> int:
    """The index of the first of the newest hunks that fit."""
    first = len(hunks)
    while first and counter.edits(hunks[first - 1 :]) <= room:
        first -= 1
    return first


def _reserve(text: str, shares: Budget, counter: TokenCounter) -> int:
    """Tokens to reserve for the window: its maximum, or in a small file at most one hop more than the file has now."""
    most = shares.prefix + shares.suffix
    return most if len(text) > most * 8 else min(most, counter.text(text) + HOP_TOKENS)


def _shrunk(span: Window, change: Change) -> Window:
    """What is left of a span when a change rewrote one of its ends."""
    low, high, new_high = change
    moved = new_high - high
    start = span.start if span.start <= low else max(new_high, span.start + moved)
    end = span.end if span.end <= low else low if span.end < high else span.end + moved
    return Window(start, max(start, end))
