"""The lines around the cursor that a model always sees, and when they move.

A window that moved with every line would never meet its own cached tokens. So its ends stay where they are, following
the text through edits, until the cursor has used up the room; then they move by a hop.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.context.budget import HOP_TOKENS
from calomel.context.counter import TokenCounter
from calomel.prompts.differences import common_prefix

# In a small window a hop is a quarter of it.
_HOP_SHARE: Final = 1 / 4
# Characters that a token of code hardly exceeds on average: so much text is looked at, and no more.
_CHARACTERS: Final = 5
# How far a window's end is moved to meet the beginning of a block, in lines.
_BLOCK_REACH: Final = 5

# (start, end, new end): what stood in [start, end) of a text stands in [start, new end) of the next one.
Change = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """Offsets [start, end) of the document, both at starts of lines (or at the end of the text)."""

    start: int
    end: int


def place(
    text: str,
    offset: int,
    known: Sequence[Window],
    rooms: tuple[int, int],
    counter: TokenCounter,
    blocks: Sequence[int] = (),
) -> Window:
    """The window for a cursor at `offset`: one of `known` that serves, the latest first, else a new one.

    Args:
        text: of the document.
        offset: of the cursor.
        known: windows of before, carried over into `text`.
        rooms: tokens for what stands before the cursor, and behind it.
        counter: counts them.
        blocks: lines at which a window begins well.
    """
    for window in known:
        if window.start <= offset <= window.end and _serves(text, offset, window, rooms, counter):
            return window
    latest = known[0] if known else None
    start = end = None
    if latest is not None and latest.start <= offset and _serves_prefix(text, latest.start, offset, rooms[0], counter):
        start = latest.start
    if latest is not None and latest.end >= offset and _serves_suffix(text, offset, latest.end, rooms[1], counter):
        end = latest.end
    return Window(
        _new_start(text, offset, rooms[0], counter, blocks) if start is None else start,
        _new_end(text, offset, rooms[1], counter) if end is None else end,
    )


def _serves(text: str, offset: int, window: Window, rooms: tuple[int, int], counter: TokenCounter) -> bool:
    return _serves_prefix(text, window.start, offset, rooms[0], counter) and _serves_suffix(
        text, offset, window.end, rooms[1], counter
    )


def carry_over(window: Window, change: Change) -> Window | None:
    """The same lines after a change, with what was typed at their end; None when an end of them was rewritten."""
    low, high, new_high = change
    if window.start <= low <= window.end and high <= window.end:
        return Window(window.start, window.end + new_high - high)
    if high <= window.start:
        return Window(window.start + new_high - high, window.end + new_high - high)
    return window if window.end < low else None


def changed(old: str, new: str) -> Change:
    """The span of `old` that became another one in `new`."""
    prefix = common_prefix(old, new)
    suffix = common_prefix(old[prefix:][::-1], new[prefix:][::-1])
    return prefix, len(old) - suffix, len(new) - suffix


def _hop(room: int) -> int:
    return max(1, min(HOP_TOKENS, int(room * _HOP_SHARE)))


def _serves_prefix(text: str, start: int, offset: int, room: int, counter: TokenCounter) -> bool:
    """Whether what stands between still fits, and is not so little that more would help."""
    if offset - start > room * _CHARACTERS * 2:
        return False
    count = counter.text(text[start:offset])
    return count <= room and (start == 0 or count >= room // 4)


def _serves_suffix(text: str, offset: int, end: int, room: int, counter: TokenCounter) -> bool:
    if end - offset > room * _CHARACTERS * 2:
        return False
    count = counter.text(text[offset:end])
    return count <= room and (end == len(text) or count >= room // 4)


def _new_start(text: str, offset: int, room: int, counter: TokenCounter, blocks: Sequence[int]) -> int:
    """A start of a line with a hop of room left for what will be typed; the beginning of a block, if one is close."""
    wanted = max(1, room - _hop(room))
    low = max(0, offset - wanted * _CHARACTERS)
    start = text.rfind("\n", 0, low) + 1 if low else 0
    while start < offset and counter.text(text[start:offset]) > wanted:
        # Drop about as much as is too much, at least a line.
        surplus = counter.text(text[start:offset]) - wanted
        following = text.find("\n", min(offset, start + surplus * 2))
        if following < 0 or following >= offset:
            return _last_line_start(text, offset, room)
        start = following + 1
    return _at_block(text, start, offset, blocks) if start else 0


def _new_end(text: str, offset: int, room: int, counter: TokenCounter) -> int:
    """An end of a line with a hop of room left."""
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
    """The start of the cursor's line; in a line that is longer than the room, a place inside of it."""
    return max(text.rfind("\n", 0, offset) + 1, offset - room * _CHARACTERS)


def _at_block(text: str, start: int, offset: int, blocks: Sequence[int]) -> int:
    """The first beginning of a block within a few lines of `start`; else `start`."""
    if not blocks:
        return start
    line = text.count("\n", 0, start)
    index = bisect_right(blocks, line - 1)
    if index == len(blocks) or blocks[index] - line > _BLOCK_REACH:
        return start
    for _ in range(blocks[index] - line):
        start = text.find("\n", start) + 1
    return start if 0 < start <= offset else text.rfind("\n", 0, offset) + 1
