"""What readers of logs share: a clock that never runs backwards, the causes of changes, and UTF-16 units."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from calomel.replay.events import Cause, Edit, Problem, apply_edits

# Times that lag behind for longer than this many entries are not errors: the recorder's clock was set back.
PATIENCE: Final = 20


class LogClock:
    """Turns the times of entries into seconds from the first one.

    A time before the last one is taken as the last one, and a `Problem` says so: one per run of such entries, for the
    first of them. A run of more than `PATIENCE` entries is a clock that was set back: time continues from there.

    Args:
        problems: list that problems are added to.
        unit: seconds in one unit of the log's times.
    """

    def __init__(self, problems: list[Problem], unit: float = 1.0) -> None:
        self.now = 0.0
        self._problems = problems
        self._unit = unit
        self._start: float | None = None
        self._late = 0

    def at(self, entry: int, time: object, *, lag: float = 0.0) -> float:
        """Seconds at an entry.

        Args:
            entry: of the log.
            time: in the log's units; None is no time, anything else but a number is a problem.
            lag: seconds by which entries of this kind may be written late.
        """
        if time is None:
            return self.now
        if isinstance(time, bool) or not isinstance(time, int | float) or not math.isfinite(time):
            self._problems.append(Problem(entry, f"Its time {time!r} is invalid; Calomel uses the previous entry's."))
            return self.now
        if self._start is None:
            self._start = float(time)
        seconds = (time - self._start) * self._unit
        late = self.now - seconds
        if late <= 0:
            self.now, self._late = seconds, 0
        elif late > lag:
            self._late += 1
            if self._late == 1:
                message = f"Time runs backwards by {late:.3f} s: it waits until the clock catches up."
                self._problems.append(Problem(entry, message))
            elif self._late > PATIENCE:
                self._start -= late / self._unit
        return self.now


# One key gives one character, or a line end with its indentation, or a bracket with its closing one.
_ONE_KEY: Final = re.compile(r"\r\n[ \t]*|[\r\n][ \t]*|[ \t]+|\(\)|\[\]|\{\}|<>|''|\"\"|``|.?", re.DOTALL)
# Replacing more than this share of a text at once is the work of a tool, or of another program that wrote the file.
_TOOL_SHARE: Final = 0.5
_TOOL_CHARACTERS: Final = 200

# Visual Studio Code's names for its reasons; all others are not typing.
REASONS: Final[dict[str, Cause]] = {
    "inlineSuggestion.accept": "accept",
    "inlineCompletionAccept": "accept",
    "inlineCompletionPartialAccept": "accept",
    "type": "typed",
    "cursor": "typed",
}


def cause_of(before: str, edits: Sequence[Edit]) -> Cause:
    """The apparent cause of a text change, where the log does not name it."""
    removed = sum(edit.end - edit.start for edit in edits)
    if removed > _TOOL_CHARACTERS and removed > _TOOL_SHARE * len(before) and any(edit.text for edit in edits):
        return "other"
    # Several cursors type the same everywhere.
    texts = {edit.text for edit in edits}
    return "typed" if len(texts) == 1 and all(map(_ONE_KEY.fullmatch, texts)) else "other"


_LAST_OF_ONE_UNIT = "\uffff"


def joined(text: str) -> str:
    """The same text with each surrogate pair made one character, as a file would hold it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _places(text: str) -> Sequence[int]:
    """For each UTF-16 unit, and for the end, the code point that it belongs to."""
    if text.isascii() or max(text) <= _LAST_OF_ONE_UNIT:
        return range(len(text) + 1)
    sizes = (1 + (character > _LAST_OF_ONE_UNIT) for character in text)
    return [*(at for at, size in enumerate(sizes) for _ in range(size)), len(text)]


def code_point_edits(text: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The same edits in code points; one that splits a character of two units replaces the whole character.

    Args:
        text: before the edits.
        edits: in UTF-16 units, sorted, not overlapping.

    Raises:
        ValueError: an edit lies outside of the text, or they are out of order or overlap.
    """
    places = _places(text)
    found: list[Edit] = []
    last = 0
    for start, end, new in edits:
        if not last <= start <= end < len(places):
            raise ValueError(f"range {start}-{end} does not fit a text of {len(places) - 1} UTF-16 units")
        last = end
        before = _half(text[places[start]], 0) if _cuts(places, start) else ""
        after = _half(text[places[end]], 1) if _cuts(places, end) else ""
        found.append(Edit(places[start], places[end] + bool(after), joined(before + new + after)))
    apply_edits(text, found)
    return tuple(found)


def code_point_offset(text: str, offset: int) -> int:
    """Convert an offset in UTF-16 units to one in code points. Raises ValueError outside of the text."""
    places = _places(text)
    if not 0 <= offset < len(places):
        raise ValueError(f"offset {offset} lies outside of a text of {len(places) - 1} UTF-16 units")
    return places[offset]


def _cuts(places: Sequence[int], offset: int) -> bool:
    """Whether an offset lies between the two units of a character."""
    return offset > 0 and places[offset] == places[offset - 1]


def _half(character: str, number: int) -> str:
    """One surrogate of a character of two units."""
    return character.encode("utf-16-le")[2 * number : 2 * number + 2].decode("utf-16-le", "surrogatepass")
