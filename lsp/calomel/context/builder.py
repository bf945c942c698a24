"""Chooses what a model sees, most stable part first: a keystroke leaves nearly all of it in the prefix cache."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final, Literal

from calomel.context.budget import Budget, TokenCounter, share_out
from calomel.context.front import Front, choose
from calomel.context.window import Window, carry_over, place
from calomel.prompts.own import diff_text
from calomel.prompts.parts import Excerpt, Hunk, PromptParts, changed_span
from calomel.workspace.workspace import Situation


def part_texts(parts: PromptParts) -> dict[str, str]:
    """The text of each part as one string, with a heading before each excerpt and each edit."""
    texts = {
        "related": [_headed(excerpt, excerpt.text) for excerpt in parts.related],
        "far": [_headed(parts.far[0], "".join(excerpt.text for excerpt in parts.far))] if parts.far else [],
        "edits": [_headed(hunk, diff_text(hunk)) for hunk in parts.edits],
    }
    return {**{name: "\n".join(found) for name, found in texts.items()}, "suffix": parts.suffix, "prefix": parts.prefix}


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
    """

    text: str
    budget: int
    windows: tuple[tuple[Window, int], ...]
    fronts: dict[int, Front]
    withdrawals: int

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
        windows = ((window, number), *(known for known in self.windows if known[0] != window))[:_WINDOWS]
        used = dict.fromkeys(at for _, at in windows)
        fronts = {**self.fronts, number: front}
        return replace(self, windows=windows, fronts={at: fronts[at] for at in used})


class ContextBuilder:
    """Builds contexts for all documents of one editor. The same calls give the same contexts, byte by byte."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._memories: OrderedDict[str, _Memory] = OrderedDict()

    def build(self, situation: Situation, budget: int) -> BuiltContext:
        """The context for a cursor, of about `budget` tokens at most (exactly so when the counter is exact)."""
        text, offset, counter = situation.text, situation.offset, self.counter
        shares = share_out(budget, has_edits=bool(situation.hunks), has_related=bool(situation.related))
        memory = self._memory(situation, budget)
        known = dict(reversed(memory.windows))
        window = place(text, offset, tuple(reversed(known)), (shares.prefix, shares.suffix), counter, situation.blocks)
        # The front last used with this window comes first.
        numbers = list(dict.fromkeys([known[window], *memory.fronts] if window in known else memory.fronts))
        fronts = [memory.fronts[number] for number in numbers]
        front = choose(fronts, situation, window, shares, counter, stays=window in known)
        number = next((at for at, each in zip(numbers, fronts, strict=True) if each is front), None)
        rebuilt = number is None
        if number is None:
            number = max(memory.fronts, default=0) + 1
        self._memories[situation.uri] = memory.with_use(window, number, front)
        parts = PromptParts(
            front.related,
            front.far,
            situation.hunks[front.first_edit :],
            situation.path,
            text[window.start : offset],
            text[offset : window.end],
        )
        return BuiltContext(parts, front, shares, window, len(text), rebuilt, counter)

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._memories.pop(uri, None)

    def clear(self) -> None:
        """Forget earlier choices, which may not be shown any more: the rules about secrets or ignored files changed."""
        self._memories.clear()

    def _memory(self, situation: Situation, budget: int) -> _Memory:
        memory = self._memories.get(situation.uri)
        fronts = () if memory is None else memory.fronts.values()
        names = {excerpt.path for front in fronts for excerpt in front.related}
        if (
            memory is None
            or (memory.budget, memory.withdrawals) != (budget, situation.withdrawals)
            or not all(map(situation.permits, names))
        ):
            memory = _Memory(situation.text, budget, (), {}, situation.withdrawals)
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
    return f"{len(parts.edits)} edits" + (f", {front.first_edit} older ones left out: no room" * bool(front.first_edit))
