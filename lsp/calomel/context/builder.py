"""Chooses what a model sees, most stable part first: a keystroke leaves nearly all of it in the prefix cache."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, Literal

from calomel.context.budget import MARKS, Budget, share_out
from calomel.context.counter import TokenCounter
from calomel.context.snapshot import Snapshot, changed, take
from calomel.context.window import Window, carry_over, place
from calomel.prompts.parts import Excerpt, Hunk, PromptParts
from calomel.workspace.situation import Situation

Part = Literal["related", "far", "edits", "suffix", "prefix"]

# Documents whose window and snapshot are remembered.
_DOCUMENTS: Final = 32
# When the stream of edits has outgrown its room, the older ones go at once, down to this share.
_KEPT_EDITS: Final = 0.5


@dataclass(frozen=True, slots=True)
class PartAccount:
    """What became of one part: its tokens, and why so many."""

    part: Part
    tokens: int
    why: str


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """A prompt's data, and an account of each part in the order in which a model reads them.

    Attributes:
        rebuilt: the front (everything before the window) is another one than before.
    """

    parts: PromptParts
    accounts: tuple[PartAccount, ...]
    budget: int
    rebuilt: bool

    @property
    def tokens(self) -> int:
        """Of all parts together, as counted."""
        return sum(account.tokens for account in self.accounts)


@dataclass(slots=True)
class _Memory:
    """What the last context of a document was made of."""

    text: str
    window: Window
    snapshot: Snapshot | None
    first_edit: int
    hops: int
    budget: int


class ContextBuilder:
    """Builds contexts for all documents of one editor. The same calls give the same contexts, byte by byte."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._memories: OrderedDict[str, _Memory] = OrderedDict()

    def build(self, situation: Situation, budget: int) -> BuiltContext:
        """The context for a cursor, of about `budget` tokens at most (exactly so when the counter is exact)."""
        shares = share_out(budget, has_edits=bool(situation.hunks), has_related=bool(situation.related))
        memory = self._memories.get(situation.uri)
        if memory is not None and memory.budget != budget:
            memory = None
        window = self._window(situation, memory, shares)
        prefix, suffix = situation.text[window.start : situation.offset], situation.text[situation.offset : window.end]
        snapshot, rebuilt = self._snapshot(situation, memory, window, shares)
        first = self._first_edit(situation, memory, shares, rebuilt=rebuilt)
        edits = situation.hunks[first:]
        far = () if snapshot is None else (Excerpt(situation.path or "", snapshot.start_line, snapshot.text),)
        tokens = {
            "far": sum(map(self.counter.excerpt, far)),
            "edits": self.counter.edits(edits),
            "suffix": self.counter.text(suffix),
            "prefix": self.counter.text(prefix),
        }
        room = budget - sum(tokens.values()) - MARKS
        related, left_out = self._related(situation.related, room)
        self._remember(situation.uri, _Memory(situation.text, window, snapshot, first, situation.hops, budget))
        accounts = (
            PartAccount("related", sum(map(self.counter.excerpt, related)), _why_related(related, left_out)),
            PartAccount("far", tokens["far"], _why_far(snapshot, shares, rebuilt=rebuilt)),
            PartAccount("edits", tokens["edits"], _why_edits(edits, first)),
            PartAccount("suffix", tokens["suffix"], _why_window(window.end == len(situation.text), shares.suffix)),
            PartAccount("prefix", tokens["prefix"], _why_window(window.start == 0, shares.prefix)),
        )
        parts = PromptParts(related, far, edits, situation.path, prefix, suffix)
        return BuiltContext(parts, accounts, budget, rebuilt)

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._memories.pop(uri, None)

    def _window(self, situation: Situation, memory: _Memory | None, shares: Budget) -> Window:
        previous = None
        if memory is not None:
            previous = memory.window
            if memory.text is not situation.text and memory.text != situation.text:
                previous = carry_over(previous, changed(memory.text, situation.text))
        return place(
            situation.text,
            situation.offset,
            previous,
            shares.prefix,
            shares.suffix,
            self.counter,
            situation.blocks,
        )

    def _snapshot(
        self, situation: Situation, memory: _Memory | None, window: Window, shares: Budget
    ) -> tuple[Snapshot | None, bool]:
        """The far parts, and whether they are other ones than before.

        This is the one place where the front is rebuilt: when the window holds the whole file or has left the snapshot,
        when the stream of edits has lost the beginning that belongs to the snapshot, and when a quarter of the snapshot
        was rewritten.
        """
        if not shares.far or (window.start == 0 and window.end == len(situation.text)):
            return None, memory is not None and memory.snapshot is not None
        old = None if memory is None else memory.snapshot
        if (
            old is not None
            and memory is not None
            and memory.hops == situation.hops
            and old.serves(situation.text, window)
        ):
            return old, False
        return take(situation.text, window, shares.far, self.counter, situation.blocks), True

    def _first_edit(self, situation: Situation, memory: _Memory | None, shares: Budget, *, rebuilt: bool) -> int:
        """From which hunk on the stream is shown: it only grows, until it is too long and loses its older half."""
        first = 0 if memory is None or memory.hops != situation.hops else min(memory.first_edit, len(situation.hunks))
        room = shares.edits
        if self.counter.edits(situation.hunks[first:]) <= room and not (rebuilt and memory is None):
            return first
        wanted = room if memory is None else int(room * _KEPT_EDITS)
        while first < len(situation.hunks) and self.counter.edits(situation.hunks[first:]) > wanted:
            first += 1
        return first

    def _related(self, excerpts: tuple[Excerpt, ...], room: int) -> tuple[tuple[Excerpt, ...], int]:
        """The most useful excerpts that fit (they come last), and how many do not."""
        kept: list[Excerpt] = []
        for excerpt in reversed(excerpts):
            tokens = self.counter.excerpt(excerpt)
            if tokens <= room:
                kept.append(excerpt)
                room -= tokens
        return tuple(reversed(kept)), len(excerpts) - len(kept)

    def _remember(self, uri: str, memory: _Memory) -> None:
        self._memories[uri] = memory
        self._memories.move_to_end(uri)
        while len(self._memories) > _DOCUMENTS:
            self._memories.popitem(last=False)


def _why_related(kept: tuple[Excerpt, ...], left_out: int) -> str:
    if not kept and not left_out:
        return "nothing found"
    return f"{len(kept)} excerpts" + (f", {left_out} left out: no room" if left_out else "")


def _why_far(snapshot: Snapshot | None, shares: Budget, *, rebuilt: bool) -> str:
    if snapshot is None:
        return "the window holds the whole file" if shares.far else "the budget is too small for more than the window"
    return f"lines {snapshot.start_line + 1} to {snapshot.end_line}" + (", taken anew" if rebuilt else ", as before")


def _why_edits(edits: tuple[Hunk, ...], first: int) -> str:
    if not edits and not first:
        return "no settled edit yet"
    return f"{len(edits)} edits" + (f", {first} older ones left out: no room" if first else "")


def _why_window(whole: bool, room: int) -> str:  # noqa: FBT001
    return "up to the end of the file" if whole else f"cut at a line: room for {room}"
