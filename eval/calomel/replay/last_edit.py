"""What each document was before the edit that the person made last, keystrokes being gathered into edits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from calomel.replay.events import Changed

# The language server's history splits edits alike.
_PAUSE: Final = 1.0
_LINES: Final = 8


@dataclass(slots=True)
class _Last:
    before: str
    time: float
    line: int


class LastEdits:
    """Told of each change before it happens."""

    def __init__(self) -> None:
        self._last: dict[str, _Last] = {}

    def changing(self, event: Changed, text: str) -> None:
        """`text` is the document's before the change."""
        if not event.edits:
            return
        line = text.count("\n", 0, event.edits[0].start)
        last = self._last.get(event.document)
        if last is None or event.time - last.time > _PAUSE or abs(line - last.line) > _LINES:
            self._last[event.document] = _Last(text, event.time, line)
        else:
            last.time, last.line = event.time, line

    def before(self, document: str) -> str | None:
        """The text before the last edit; None when there was none."""
        last = self._last.get(document)
        return None if last is None else last.before
