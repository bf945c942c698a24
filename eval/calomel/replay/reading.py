"""What readers of logs share: a clock that never runs backwards, the causes of changes, and UTF-16 units."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from calomel.replay.events import Cause, Edit, Problem, apply_edits

# Times that lag behind for longer than this many entries are not wrong ones: somebody set the recorder's clock back.
PATIENCE: Final = 20


class LogClock:
    """Turns the times of entries into seconds from the first one.

    A time before the last one is taken as the last one, and a `Problem` says so: one for a run of such entries, named
    after its first. A run of more than `PATIENCE` entries is a clock that was set back: time goes on from there.

    Args:
        problems: where what is wrong is put.
        unit: seconds in one unit of the log's times.
        start: time of the log's start in its own units; None: that of the first entry.
    """

    def __init__(self, problems: list[Problem], unit: float = 1.0, start: float | None = None) -> None:
        self.now = 0.0
        self._problems = problems
        self._unit = unit
        self._start = start
        # The first entry of a run of late ones, how many there are, and by how much the first was late.
        self._run: tuple[int, int, float] | None = None

    def at(self, entry: int, time: object, *, lag: float = 0.0) -> float:
        """Seconds at an entry.

        Args:
            entry: of the log.
            time: in the log's units; anything but a number is a problem, None is no time and none.
            lag: seconds that entries of this kind may be written down late.
        """
        if time is None:
            return self.now
        if isinstance(time, bool) or not isinstance(time, int | float) or not math.isfinite(time):
            self._problems.append(Problem(entry, f"Its time {time!r} is no time; taken as that of the entry before."))
            return self.now
        if self._start is None:
            self._start = float(time)
        seconds = (time - self._start) * self._unit
        late = self.now - seconds
        if late <= 0:
            self.settle()
            self.now = seconds
        elif late > lag:
            self._late(entry, late)
        return self.now

    def settle(self) -> None:
        """Say what is left to say; to be called at the log's end."""
        if self._run is None:
            return
        first, count, late = self._run
        more = f", and so are {count - 1} entries after it" if count > 1 else ""
        message = f"Time runs backwards by {late:.3f} s: taken as the time of the entry before{more}."
        self._problems.append(Problem(first, message))
        self._run = None

    def _late(self, entry: int, late: float) -> None:
        first, count, by = self._run or (entry, 0, late)
        self._run = (first, count + 1, by)
        if count + 1 <= PATIENCE:
            return
        self._problems.append(
            Problem(
                first,
                f"Time runs backwards by {by:.3f} s and stays behind: {count + 1} entries are taken at the time of the"
                " entry before, and time is counted on from there.",
            )
        )
        self._run = None
        self._start = (self._start or 0.0) - late / self._unit


# One key gives one character, or a line end with its indentation, or a bracket with its closing one.
_ONE_KEY: Final = re.compile(r"\r\n[ \t]*|[\r\n][ \t]*|[ \t]+|\(\)|\[\]|\{\}|<>|''|\"\"|``|.?", re.DOTALL)
# Who replaces more than this much of a text at once is a tool, or another program that wrote the file.
_TOOL_SHARE: Final = 0.5
_TOOL_CHARACTERS: Final = 200

# What Visual Studio Code calls its reasons; all others are no typing.
REASONS: Final[dict[str, Cause]] = {
    "inlineSuggestion.accept": "accept",
    "inlineCompletionAccept": "accept",
    "inlineCompletionPartialAccept": "accept",
    "type": "typed",
    "cursor": "typed",
}


def cause_of(before: str, edits: Sequence[Edit]) -> Cause:
    """How a change of a text seems to have come about, where the log does not tell."""
    removed = sum(edit.end - edit.start for edit in edits)
    if removed > _TOOL_CHARACTERS and removed > _TOOL_SHARE * len(before) and any(edit.text for edit in edits):
        return "other"
    # Several cursors type the same everywhere.
    texts = {edit.text for edit in edits}
    return "typed" if len(texts) == 1 and all(map(_ONE_KEY.fullmatch, texts)) else "other"


_LAST_OF_ONE_UNIT = "\uffff"


def wide(text: str) -> bool:
    """Whether some character of the text takes two units."""
    return not text.isascii() and max(text, default="") > _LAST_OF_ONE_UNIT


def joined(text: str) -> str:
    """The same text with each pair of surrogates made one character, as a file would hold it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def code_point_edits(text: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The same edits in code points; one that cuts a character of two units in half replaces the whole character.

    Args:
        text: before the edits.
        edits: in UTF-16 units, sorted, not overlapping.

    Raises:
        ValueError: an edit lies outside of the text, or they are out of order or overlap.
    """
    if not wide(text):
        apply_edits(text, edits)
        return tuple(edits)
    units = text.encode("utf-16-le", "surrogatepass")
    found: list[Edit] = []
    last = 0
    for edit in edits:
        if not last <= edit.start <= edit.end <= len(units) // 2:
            raise ValueError(f"range {edit.start}-{edit.end} does not fit a text of {len(units) // 2} UTF-16 units")
        last = edit.end
        start, end, new = edit.start, edit.end, edit.text
        if _inside_pair(units, start):
            start, new = start - 1, _unit(units, start - 1) + new
        if _inside_pair(units, end):
            end, new = end + 1, new + _unit(units, end)
        found.append(Edit(_length(units[: 2 * start]), _length(units[: 2 * end]), joined(new)))
    apply_edits(text, found)
    return tuple(found)


def code_point_offset(text: str, offset: int) -> int:
    """A place in UTF-16 units as a place in code points. Raises ValueError outside of the text."""
    if not wide(text):
        if not 0 <= offset <= len(text):
            raise ValueError(f"offset {offset} lies outside of a text of {len(text)} characters")
        return offset
    units = text.encode("utf-16-le", "surrogatepass")
    if not 0 <= 2 * offset <= len(units):
        raise ValueError(f"offset {offset} lies outside of a text of {len(units) // 2} UTF-16 units")
    return _length(units[: 2 * (offset - _inside_pair(units, offset))])


def _unit(units: bytes, at: int) -> str:
    return units[2 * at : 2 * at + 2].decode("utf-16-le", "surrogatepass")


def _inside_pair(units: bytes, at: int) -> bool:
    if not 0 < 2 * at < len(units):
        return False
    return "\ud800" <= _unit(units, at - 1) <= "\udbff" and "\udc00" <= _unit(units, at) <= "\udfff"


def _length(units: bytes) -> int:
    return len(units.decode("utf-16-le", "surrogatepass"))
