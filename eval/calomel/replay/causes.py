"""How a change came about, where a log does not say it: told from the change itself.

A rule of thumb for the report's columns, not a measurement: nothing is scored by it but the count of typed characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from calomel.replay.events import Cause, Edit

# One key gives one character, or a line end with its indentation, or a bracket with its closing one.
_ONE_KEY: Final = re.compile(r"\r\n[ \t]*|[\r\n][ \t]*|[ \t]+|\(\)|\[\]|\{\}|<>|''|\"\"|``|.?", re.DOTALL)
# What somebody chooses from a list of completions is a name; anything longer, or with a line end in it, was pasted.
_LONGEST_NAME: Final = 40
# Who replaces more than this much of a text at once is a tool, or another program that wrote the file.
_TOOL_SHARE: Final = 0.5
_TOOL_CHARACTERS: Final = 200
# Undoing one character looks like the backspace key.
_SHORTEST_UNDO: Final = 2
_REMEMBERED: Final = 50

# What Visual Studio Code calls its reasons.
REASONS: Final[dict[str, Cause]] = {
    "inlineSuggestion.accept": "accept",
    "inlineCompletionAccept": "accept",
    "inlineCompletionPartialAccept": "accept",
    "formatEditsCommand": "format",
    "snippet": "snippet",
    "undo": "undo",
    "redo": "redo",
    "paste": "paste",
    "type": "typed",
    "cursor": "typed",
}


class CauseFinder:
    """Names the cause of each change of one document; remembers what it needs to see an undo."""

    def __init__(self) -> None:
        # Inverses of changes that could be undone, and of undone ones that could be done again; newest last.
        self._undos: list[tuple[Edit, ...]] = []
        self._redos: list[tuple[Edit, ...]] = []

    def cause(self, before: str, edits: Sequence[Edit], told: Cause | None = None) -> Cause:
        """The cause of a change.

        Args:
            before: the text.
            edits: of the change.
            told: what the log says, which is believed.
        """
        done, inverse = tuple(edits), inverted(before, edits)
        found = told or self._repeated(before, done) or _by_shape(before, done)
        if found == "undo":
            _drop_last(self._undos, done)
            self._redos.append(inverse)
        else:
            if found == "redo":
                _drop_last(self._redos, done)
            else:
                self._redos.clear()
            self._undos.append(inverse)
        del self._undos[:-_REMEMBERED], self._redos[:-_REMEMBERED]
        return found

    def _repeated(self, before: str, done: tuple[Edit, ...]) -> Cause | None:
        if sum(len(edit.text) + edit.end - edit.start for edit in done) < _SHORTEST_UNDO:
            return None
        if self._redos and self._redos[-1] == done:
            return "redo"
        only_deletes = all(not edit.text for edit in done)
        if self._undos and self._undos[-1] == done and not (only_deletes and _one_key(before, done)):
            return "undo"
        return None


def inverted(before: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits that take a change back, in offsets of the text after it."""
    found: list[Edit] = []
    shift = 0
    for edit in edits:
        start = edit.start + shift
        found.append(Edit(start, start + len(edit.text), before[edit.start : edit.end]))
        shift += len(edit.text) - (edit.end - edit.start)
    return tuple(found)


def _drop_last(stack: list[tuple[Edit, ...]], done: tuple[Edit, ...]) -> None:
    if stack and stack[-1] == done:
        stack.pop()


def _one_key(before: str, edits: Sequence[Edit]) -> bool:
    return all(edit.end - edit.start <= 1 or not before[edit.start : edit.end].strip() for edit in edits)


def _by_shape(before: str, edits: Sequence[Edit]) -> Cause:
    removed = sum(edit.end - edit.start for edit in edits)
    if removed > _TOOL_CHARACTERS and removed > _TOOL_SHARE * len(before) and any(edit.text for edit in edits):
        return "other"
    # Several cursors type the same everywhere.
    texts = {edit.text for edit in edits}
    if all(_ONE_KEY.fullmatch(text) for text in texts):
        return "typed" if len(texts) == 1 else "other"
    text = max(texts, key=len)
    return "paste" if len(texts) == 1 and (len(text) > _LONGEST_NAME or "\n" in text or "\r" in text) else "other"
