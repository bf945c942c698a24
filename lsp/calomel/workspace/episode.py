"""An edit as a person would name it: neighbouring changes of one document, between two states of its text."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from calomel.prompts.differences import text_hunks
from calomel.prompts.parts import Hunk
from calomel.workspace.documents import Document, TextChange

# As the best open client groups them: neighbours are at most so many lines from the latest change.
LINE_SPAN: Final = 8
# A pause after which two edits are two, even in one place.
PAUSE_SECONDS: Final = 1.0


class Episode:
    """One edit, open until another one begins. It holds whole texts, which Python shares rather than copies.

    A pause remembers the text of that moment, so that reading can tell two edits apart that storing did not.
    """

    def __init__(self, document: Document, change: TextChange, *, predicted: bool, now: float) -> None:
        self.uri = document.uri
        self.path = prompt_path(document)
        self.predicted = predicted
        self._base = text_before(document, change)
        self._paused: str | None = None
        self._updated = now
        self._latest = change.start_line

    def takes(self, document: Document, change: TextChange, *, predicted: bool) -> bool:
        """Whether the change belongs to this edit."""
        near = change.start_line <= self._latest + LINE_SPAN and change.end_line >= self._latest - LINE_SPAN
        return document.uri == self.uri and predicted == self.predicted and near

    def add(self, document: Document, change: TextChange, now: float) -> None:
        """Take in a change; the document holds the text after it."""
        if now - self._updated >= PAUSE_SECONDS:
            self._paused = text_before(document, change)
        self._updated = now
        self._latest = change.start_line + change.inserted.count("\n")

    def hunks(self, text: str) -> tuple[Hunk, ...]:
        """What the edit did until the document had `text`, split where the person paused."""
        states = [self._base, text] if self._paused is None else [self._base, self._paused, text]
        return tuple(
            hunk for old, new in pairwise(states) for hunk in text_hunks(self.path, old, new, predicted=self.predicted)
        )


def prompt_path(document: Document) -> str:
    """How prompts name a document: its path, else the last part of its uri."""
    return document.path or document.uri.rpartition("/")[2] or document.uri


def text_before(document: Document, change: TextChange) -> str:
    """The document's text before its latest change."""
    text = document.text
    return text[: change.start] + change.removed + text[change.start + len(change.inserted) :]
