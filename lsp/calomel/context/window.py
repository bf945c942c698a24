"""The lines around the cursor that a model always sees, and when they move; how tokens are divided and counted.

A window that moved with every line would never hit its own cached tokens. So its ends stay in place, following the text
through edits, until the cursor has used up the room; then they move by a hop.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from calomel.prompts.own import FAR_TOKENS, NEAR_TOKENS, ContextRenderer, split_suffix
from calomel.prompts.parts import Excerpt, Hunk
from calomel.prompts.tokenizer import Tokenizer

# More than this around the cursor helps little, and a keystroke after a jump has to encode all of it.
WINDOW_TOKENS: Final = 1280
# By how much a full window moves.
HOP_TOKENS: Final = 512
# The share of the window that is for the text after the cursor.
SUFFIX_SHARE: Final = 1 / 4
EDITS_SHARE: Final = 1 / 8
EDITS_TOKENS: Final = 1024
FAR_SHARE: Final = 3 / 8
# Below this budget the window holds what matters of the file, and a snapshot of the rest would only be a copy of it.
FAR_FROM: Final = 4096
# In a small context with related code: room for an excerpt or two.
SMALL_RELATED_SHARE: Final = 1 / 4
# Tokens for headings, markers and the nearest suffix.
MARKS: Final = 48


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens for each part.

    Attributes:
        total: of the prompt.
        prefix, suffix: of the window, at most.
        edits, far: at most.
        related: at least; it also gets what the others leave.
    """

    total: int
    prefix: int
    suffix: int
    edits: int
    far: int
    related: int


def share_out(total: int, *, has_edits: bool, has_related: bool) -> Budget:
    """Divide `total` tokens. Without edits and related code, a small context is all window."""
    edits = min(EDITS_TOKENS, int(total * EDITS_SHARE)) if has_edits or total >= FAR_FROM else 0
    far = int(total * FAR_SHARE) if total >= FAR_FROM else 0
    related = int(total * SMALL_RELATED_SHARE) if has_related and not far else 0
    window = max(1, min(WINDOW_TOKENS if far else total, total - edits - far - related) - MARKS)
    suffix = int(window * SUFFIX_SHARE)
    return Budget(total, window - suffix, suffix, edits, far, related or max(0, total - edits - far - window - MARKS))


# Low on purpose, so that an estimate rarely promises room that does not exist.
_BYTES_PER_TOKEN: Final = 3
# Markers and path of an excerpt.
_HEADING_TOKENS: Final = 12
_REMEMBERED: Final = 256


class TokenCounter(Protocol):
    """Counts tokens; the same text always counts the same."""

    def text(self, text: str) -> int:
        """Tokens of a text."""

    def suffix(self, text: str) -> int:
        """Tokens that the text after the cursor takes in a prompt."""

    def excerpts(self, excerpts: Sequence[Excerpt]) -> int:
        """Tokens of consecutive excerpts, with the headings they need."""

    def edits(self, hunks: Sequence[Hunk]) -> int:
        """Tokens of a stream of edits, with its headings."""


class ExactCounter:
    """Counts with the tokenizer of the model that will read the text.

    Attributes:
        edits: tokens of a stream of edits, with its headings.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        renderer = ContextRenderer(tokenizer)
        self._counted = lru_cache(maxsize=_REMEMBERED)(lambda text: len(tokenizer.encode(text)))
        # A front is counted several times per keystroke, and stays the same.
        self._standing = lru_cache(maxsize=_REMEMBERED)(renderer.excerpts_tokens)
        self.edits = renderer.edits_tokens

    def text(self, text: str) -> int:
        """Tokens of a text. Lines before the last are cached: typing changes the last one."""
        cut = text.rfind("\n") + 1
        return self._counted(text[:cut]) + (self._counted(text[cut:]) if cut < len(text) else 0)

    def suffix(self, text: str) -> int:
        """Tokens that the text after the cursor takes in a prompt: what is near, and lines from the next anchor on."""
        near, far = split_suffix(text, self._tokenizer)
        return len(near) + min(FAR_TOKENS, self.text(far))

    def excerpts(self, excerpts: Sequence[Excerpt]) -> int:
        """Tokens of excerpts, with the headings they need."""
        return self._standing(tuple(excerpts))


class EstimateCounter:
    """Estimates three bytes per token."""

    def text(self, text: str) -> int:
        """About how many tokens a text has."""
        return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)

    def suffix(self, text: str) -> int:
        """About how many tokens the text after the cursor takes in a prompt."""
        return min(NEAR_TOKENS + FAR_TOKENS, self.text(text))

    def excerpts(self, excerpts: Sequence[Excerpt]) -> int:
        """About how many tokens the excerpts have."""
        return sum(self.text(excerpt.text) + _HEADING_TOKENS for excerpt in excerpts)

    def edits(self, hunks: Sequence[Hunk]) -> int:
        """About how many tokens the edits have."""
        return sum(self.text(hunk.before + hunk.after) + _HEADING_TOKENS for hunk in hunks)


# In a small window, a hop is this share of it.
_HOP_SHARE: Final = 1 / 4
# Characters per token that code hardly exceeds on average: no more text than this is looked at.
_CHARACTERS: Final = 5
# How many lines a window's end is moved, at most, to meet the beginning of a block.
_BLOCK_REACH: Final = 5

# (start, end, new end): the text in [start, end) became the text in [start, new end).
ChangedSpan = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """Offsets [start, end) in the document, both at line starts (or at the end of the text)."""

    start: int
    end: int

    def is_whole(self, text: str) -> bool:
        """Whether it is all of `text`."""
        return self.start == 0 and self.end == len(text)


def place(
    text: str,
    offset: int,
    earlier: Sequence[Window],
    rooms: tuple[int, int],
    counter: TokenCounter,
    blocks: Sequence[int] = (),
) -> Window:
    """The window for a cursor at `offset`: the first of `earlier` (the latest first) that serves, else a new one.

    Args:
        text: of the document.
        offset: of the cursor.
        earlier: earlier windows, carried over to `text`.
        rooms: tokens for the text before the cursor, and after it.
        counter: counts them.
        blocks: lines that are good beginnings of a window.
    """

    def starts(window: Window) -> bool:
        at = window.start
        return at <= offset and _serves(text, at, offset, rooms[0], counter, whole=at == 0)

    def ends(window: Window) -> bool:
        at = window.end
        return at >= offset and _serves(text, offset, at, rooms[1], counter, whole=at == len(text))

    for window in earlier:
        if starts(window) and ends(window):
            return window
    latest = earlier[0] if earlier else None
    start = latest.start if latest is not None and starts(latest) else None
    end = latest.end if latest is not None and ends(latest) else None
    return Window(
        _new_start(text, offset, rooms[0], counter, blocks) if start is None else start,
        _new_end(text, offset, rooms[1], counter) if end is None else end,
    )


def carry_over(window: Window, change: ChangedSpan) -> Window | None:
    """The same lines after a change, with text typed at their end; None when one of their ends was rewritten."""
    low, high, new_high = change
    if window.start <= low <= window.end and high <= window.end:
        return Window(window.start, window.end + new_high - high)
    if high <= window.start:
        return Window(window.start + new_high - high, window.end + new_high - high)
    return window if window.end < low else None


def _hop(room: int) -> int:
    return max(1, min(HOP_TOKENS, int(room * _HOP_SHARE)))


def _serves(text: str, start: int, end: int, room: int, counter: TokenCounter, *, whole: bool) -> bool:
    """Whether the text between fits, and is not so little that more would help; `whole`: there is no more."""
    if end - start > room * _CHARACTERS * 2:
        return False
    count = counter.text(text[start:end])
    return count <= room and (whole or count >= room // 4)


def _new_start(text: str, offset: int, room: int, counter: TokenCounter, blocks: Sequence[int]) -> int:
    """A line start that leaves a hop of room for what will be typed; the beginning of a block, if one is close."""
    wanted = max(1, room - _hop(room))
    low = max(0, offset - wanted * _CHARACTERS)
    start = text.rfind("\n", 0, low) + 1 if low else 0
    while start < offset and counter.text(text[start:offset]) > wanted:
        # Drop about the surplus, at least a line.
        surplus = counter.text(text[start:offset]) - wanted
        following = text.find("\n", min(offset, start + surplus * 2))
        if following < 0 or following >= offset:
            return _last_line_start(text, offset, room)
        start = following + 1
    return _at_block(text, start, offset, blocks) if start else 0


def _new_end(text: str, offset: int, room: int, counter: TokenCounter) -> int:
    """A line end that leaves a hop of room."""
    wanted = max(1, room - _hop(room))
    high = offset + wanted * _CHARACTERS
    end = text.find("\n", high) + 1 or len(text) if high < len(text) else len(text)
    while end > offset and counter.text(text[offset:end]) > wanted:
        surplus = counter.text(text[offset:end]) - wanted
        before = text.rfind("\n", offset, max(offset, end - 1 - surplus * 2)) + 1
        if before <= offset:
            break
        end = before
    return end


def _last_line_start(text: str, offset: int, room: int) -> int:
    """The start of the cursor's line; in a line longer than the room, a place inside it."""
    return max(text.rfind("\n", 0, offset) + 1, offset - room * _CHARACTERS)


def _at_block(text: str, start: int, offset: int, blocks: Sequence[int]) -> int:
    """The first beginning of a block within a few lines of `start`; else the start of the cursor's line."""
    moved = _to_block(text, start, blocks, _BLOCK_REACH)
    return moved if 0 < moved <= offset else text.rfind("\n", 0, offset) + 1


def _to_block(text: str, start: int, blocks: Sequence[int], reach: int) -> int:
    """The start of the first block within `reach` lines after `start`, a line start; else `start`."""
    line = text.count("\n", 0, start)
    index = bisect_left(blocks, line)
    if index < len(blocks) and blocks[index] - line <= reach:
        for _ in range(blocks[index] - line):
            start = text.find("\n", start) + 1
    return start


_SNAPSHOT_REACH: Final = 12
# The snapshot goes into the prompt in pieces of about this many characters, so that not all of it is left out when
# tokens were only estimated.
_PIECE: Final = 4096


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """Whole lines of the file.

    Attributes:
        excerpts: the lines, in consecutive pieces.
        span: where these lines are now.
    """

    excerpts: tuple[Excerpt, ...]
    span: Window

    def holds(self, window: Window) -> bool:
        """Whether it contains the whole window."""
        return self.span.start <= window.start and window.end <= self.span.end

    def __len__(self) -> int:
        """In characters."""
        return sum(len(excerpt.text) for excerpt in self.excerpts)

    def changed(self, text: str) -> int:
        """Characters in lines that only one of the snapshot and its span of `text` has."""
        then = Counter(line for excerpt in self.excerpts for line in excerpt.text.splitlines())
        now = Counter(text[self.span.start : self.span.end].splitlines())
        return sum(len(line) * count for line, count in ((then - now) + (now - then)).items())


def take(
    path: str, text: str, window: Window, room: int, counter: TokenCounter, blocks: Sequence[int]
) -> FileSnapshot | None:
    """The lines around the window that fit into `room` tokens, twice as many above as below, cut at blocks.

    The window is inside it, so that the window can move without changing the snapshot. None when it does not fit.
    """
    size = min(len(text), room * _CHARACTERS)
    middle = (window.start + window.end) // 2
    while size > _CHARACTERS:
        start = max(0, min(middle - size * 2 // 3, len(text) - size))
        start = min(_block_start(text, start, blocks), window.start)
        end = max(_line_end(text, start + size), window.end)
        pieces = _pieces(path, text, start, end)
        count = counter.excerpts(pieces)
        if count <= room:
            return FileSnapshot(pieces, Window(start, end))
        size = min(size - _CHARACTERS, int(size * room / count * 0.97))
        if start == window.start and end == window.end:
            break
    return None


def _pieces(path: str, text: str, start: int, end: int) -> tuple[Excerpt, ...]:
    """The lines from `start` to `end`, in excerpts of whole lines."""
    pieces: list[Excerpt] = []
    line = text.count("\n", 0, start)
    while start < end:
        cut = text.find("\n", min(start + _PIECE, end) - 1, end) + 1 or end
        pieces.append(Excerpt(path, line, text[start:cut]))
        line += pieces[-1].text.count("\n")
        start = cut
    return tuple(pieces)


def _block_start(text: str, start: int, blocks: Sequence[int]) -> int:
    """The first line start at or after `start`; that of a block, if one begins within a few lines."""
    if start == 0:
        return 0
    return _to_block(text, text.find("\n", start - 1) + 1 or len(text), blocks, _SNAPSHOT_REACH)


def _line_end(text: str, end: int) -> int:
    """The end of the last whole line before `end`; the end of the text when that is nearer."""
    return len(text) if end >= len(text) else text.rfind("\n", 0, end) + 1
