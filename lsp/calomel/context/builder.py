"""Chooses what a model sees, most stable part first: a keystroke leaves nearly all of it in the prefix cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from calomel.context.window import (
    HOP_TOKENS,
    MARKS,
    Budget,
    ChangedSpan,
    FileSnapshot,
    TokenCounter,
    Window,
    carry_over,
    place,
    share_out,
    take,
)
from calomel.prompts.own import diff_text
from calomel.prompts.parts import Excerpt, Hunk, PromptParts, changed_span
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
    snapshot: FileSnapshot | None
    first_edit: int
    hops: int
    changed: int = 0
    why: str = "first use"

    def after(self, change: ChangedSpan) -> Front:
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
    rested: bool,
) -> Front:
    """The front for `window`: one of `fronts`, the first that still serves, else a new one.

    This is the one rule about when the beginning of a prompt changes:

    * While the user only looks at code outside the snapshot, without a settled edit there, all of it stays: the
      answer waits only for the window, and the code that was worked on is there when the cursor comes back.
    * Related code stays as long as the window does (`stays`); until the typing pauses, so does the lack of it, and what
      `ContextBuilder.renew` would replace. When the window moves, it stays if it holds at least half of what would be
      chosen now. Otherwise everything is chosen anew.
    * Snapshot and stream stay while the window is inside the snapshot, the lines changed since are at most a quarter of
      the snapshot, and the stream still has its beginning and fits its room. Otherwise both start anew: what the stream
      drops is in the new snapshot. Related code, which comes before them, stays.
    """
    why = ""
    keeps_related: Front | None = None
    for front in fronts:
        kept = (stays and (front.related or not rested)) or _only_looks(front.snapshot, window, situation)
        if not kept and not _serves_related(front, situation.related, shares, counter):
            why = why or "other code matters here"
            continue
        reason = _worn(front, situation, window, shares, counter)
        if not reason:
            return front
        why, keeps_related = (why or reason), (keeps_related or front)
    return _chosen(keeps_related, situation, window, shares, counter, why or "first use")


def _worn(front: Front, situation: Situation, window: Window, shares: Budget, counter: TokenCounter) -> str:
    """Why snapshot and stream have to be replaced; empty while they serve."""
    if front.hops != situation.hops:
        return "older edits forgotten"
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


def _only_looks(snapshot: FileSnapshot | None, window: Window, situation: Situation) -> bool:
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


def _taken(situation: Situation, window: Window, room: int, counter: TokenCounter) -> FileSnapshot | None:
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
    overlap = sum(tokens * _covered(excerpt, front.related) for tokens, excerpt in zip(needed, chosen, strict=True))
    return overlap >= _RELATED_SHARE * sum(needed)


def _covered(excerpt: Excerpt, others: tuple[Excerpt, ...]) -> float:
    """The share of the excerpt's lines that other excerpts contain."""
    start, end = _lines(excerpt)
    common = 0
    for other in others:
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


def _shrunk(span: Window, change: ChangedSpan) -> Window:
    """What is left of a span when a change rewrote one of its ends."""
    low, high, new_high = change
    moved = new_high - high
    start = span.start if span.start <= low else max(new_high, span.start + moved)
    end = span.end if span.end <= low else low if span.end < high else span.end + moved
    return Window(start, max(start, end))


def part_texts(parts: PromptParts) -> dict[str, str]:
    """The text of each part as one string, with a heading before each excerpt and each edit."""
    texts = {
        "related": [_headed(excerpt, excerpt.text) for excerpt in parts.related],
        "far": [_headed(parts.far[0], "".join(excerpt.text for excerpt in parts.far))] if parts.far else [],
        "edits": [_headed(hunk, diff_text(hunk)) for hunk in parts.edits],
    }
    return {
        **{name: "\n".join(pieces) for name, pieces in texts.items()},
        "suffix": parts.suffix,
        "prefix": parts.prefix,
    }


def _headed(value: Excerpt | Hunk, text: str) -> str:
    """`text` below `path:line`, the line counted from 1."""
    return f"--- {value.path}:{value.start_line + 1}\n{text}"


# How many documents are remembered; per document, how many windows that the cursor may return to.
_DOCUMENTS: Final = 32
_WINDOWS: Final = 4


@dataclass(frozen=True, slots=True)
class PartAccount:
    """What became of one part: its tokens, and the reason for their number."""

    part: Literal["related", "far", "edits", "suffix", "prefix"]
    tokens: int
    why: str


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """A prompt's data, and how it was chosen.

    Attributes:
        parts: what a model sees.
        front: everything before the window.
        shares: of the budget.
        window: the part of the document around the cursor.
        length: of the document.
        rebuilt: the front was chosen anew.
        counter: of tokens.
    """

    parts: PromptParts
    front: Front
    shares: Budget
    window: Window
    length: int
    rebuilt: bool
    counter: TokenCounter

    @property
    def accounts(self) -> tuple[PartAccount, ...]:
        """What became of each part, in the order in which a model reads them."""
        parts, counter, start, room = self.parts, self.counter, self.window.start, self.shares.prefix
        prefix = "from the beginning of the file" if start == 0 else f"cut at a line: room for {room}"
        suffix = counter.suffix(parts.suffix)
        whole = self.window.end == self.length and suffix >= counter.text(parts.suffix)
        left_out = "cut at a line: the code near the cursor, and lines after it"
        return (
            PartAccount("related", counter.excerpts(parts.related), _why_related(self.front)),
            PartAccount("far", counter.excerpts(parts.far), _why_far(self.front, self.shares)),
            PartAccount("edits", counter.edits(parts.edits), _why_edits(parts, self.front)),
            PartAccount("suffix", suffix, "up to the end of the file" if whole else left_out),
            PartAccount("prefix", counter.text(parts.prefix), prefix),
        )


@dataclass(frozen=True, slots=True)
class _Memory:
    """What the last contexts of a document were made of.

    Attributes:
        windows: the latest first, each with the number of its front.
        fronts: by number.
        edition: of what they were chosen from (`ContextBuilder.renew`).
        pauses: in the typing until then.
    """

    text: str
    budget: int
    windows: tuple[tuple[Window, int], ...]
    fronts: dict[int, Front]
    withdrawals: int
    edition: int
    pauses: int

    def now(self, text: str) -> _Memory:
        """The same, carried over to the current text."""
        if self.text is text or self.text == text:
            return self
        change = changed_span(self.text, text)
        moved = ((carry_over(window, change), front) for window, front in self.windows)
        windows = tuple((window, front) for window, front in moved if window is not None)
        fronts = {number: front.after(change) for number, front in self.fronts.items()}
        return replace(self, text=text, windows=windows, fronts=fronts)

    def with_use(self, window: Window, number: int, front: Front) -> _Memory:
        """With the newest window and front first; what has not been used for long is dropped."""
        windows = ((window, number), *(each for each in self.windows if each[0] != window))[:_WINDOWS]
        used = dict.fromkeys(at for _, at in windows)
        fronts = {**self.fronts, number: front}
        return replace(self, windows=windows, fronts={at: fronts[at] for at in used})


class ContextBuilder:
    """Builds contexts for all documents of one editor. The same calls give the same contexts, byte by byte."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._edition = 0
        self._memories: OrderedDict[str, _Memory] = OrderedDict()

    def build(self, situation: Situation, budget: int) -> BuiltContext:
        """The context for a cursor, of about `budget` tokens at most (exactly so when the counter is exact)."""
        text, offset, counter = situation.text, situation.offset, self.counter
        memory = self._memory(situation, budget)
        rested = not memory.windows or memory.pauses != situation.pauses
        related = situation.related if rested else memory.fronts[memory.windows[0][1]].related
        shares = share_out(budget, has_edits=bool(situation.hunks), has_related=bool(related))
        number_of = dict(reversed(memory.windows))
        window = place(
            text, offset, tuple(reversed(number_of)), (shares.prefix, shares.suffix), counter, situation.blocks
        )
        # The front last used with this window comes first.
        numbers = list(dict.fromkeys([number_of[window], *memory.fronts] if window in number_of else memory.fronts))
        fronts = [memory.fronts[number] for number in numbers]
        front = choose(fronts, situation, window, shares, counter, stays=window in number_of, rested=rested)
        number = next((at for at, each in zip(numbers, fronts, strict=True) if each is front), None)
        rebuilt = number is None
        if number is None:
            number = max(memory.fronts, default=0) + 1
        self._memories[situation.uri] = replace(memory.with_use(window, number, front), pauses=situation.pauses)
        parts = PromptParts(
            front.related,
            front.far,
            situation.hunks[front.first_edit :],
            situation.path,
            text[window.start : offset],
            text[offset : window.end],
        )
        return BuiltContext(parts, front, shares, window, len(text), rebuilt, counter)

    def clear(self) -> None:
        """Forget earlier choices, which may not be shown any more: the rules about secrets or ignored files changed."""
        self._memories.clear()

    def renew(self) -> None:
        """There is more to choose from: choose anew in each document once the typing has paused."""
        self._edition += 1

    def _memory(self, situation: Situation, budget: int) -> _Memory:
        memory = self._memories.get(situation.uri)
        if memory is not None and memory.edition != self._edition and memory.pauses != situation.pauses:
            memory = None
        if memory is None or (memory.budget, memory.withdrawals) != (budget, situation.withdrawals):
            memory = _Memory(situation.text, budget, (), {}, situation.withdrawals, self._edition, situation.pauses)
        self._memories[situation.uri] = memory
        self._memories.move_to_end(situation.uri)
        while len(self._memories) > _DOCUMENTS:
            self._memories.popitem(last=False)
        return memory.now(situation.text)


def _why_related(front: Front) -> str:
    if not front.related:
        return f"left out: no room for {front.left_out} excerpts" if front.left_out else "nothing found"
    left_out = f", {front.left_out} left out: no room" if front.left_out else ""
    return f"{len(front.related)} excerpts{left_out}; chosen: {front.why}"


def _why_far(front: Front, shares: Budget) -> str:
    if not front.far:
        return "the window holds the whole file" if shares.far else "left out: the budget is small, the window has it"
    first, last = front.far[0], front.far[-1]
    lines = last.start_line + len(last.text.splitlines())
    return f"lines {first.start_line + 1} to {lines}, cut at blocks; taken: {front.why}"


def _why_edits(parts: PromptParts, front: Front) -> str:
    if not parts.edits and not front.first_edit:
        return "no settled edit yet"
    count = len(parts.edits)
    more = f", {front.first_edit} older left out: no room" * bool(front.first_edit)
    return f"{count} edit{'s' * (count != 1)}{more}"
