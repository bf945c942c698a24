"""An edit as a person would name it: neighbouring changes of one document, between two states of its text."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final

from calomel.prompts.parts import Hunk
from calomel.workspace.documents import Document, TextChange, common_prefix
from calomel.workspace.lines import split_lines

# As the best open client groups them: neighbours are at most so many lines from the latest change.
LINE_SPAN: Final = 8
# A pause after which two edits are two, even in one place.
PAUSE_SECONDS: Final = 1.0
# Beyond so many characters on either side it is a paste, a formatter or another branch, and only counted.
SIZE_LIMIT: Final = 6144
# difflib is quadratic at worst; larger regions are shown as one replacement.
_DIFF_LINES: Final = 200


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


def text_hunks(path: str, old: str, new: str, *, predicted: bool = False) -> tuple[Hunk, ...]:
    """The differences of two texts as hunks of whole lines.

    None for differences in blanks alone, nor for those that are too large to be one person's edit.
    """
    start, old_lines, new_lines = _changed_lines(old, new)
    if max(sum(map(len, old_lines)), sum(map(len, new_lines))) > SIZE_LIMIT:
        return ()
    if len(old_lines) + len(new_lines) > _DIFF_LINES:
        blocks = [(0, len(old_lines), 0, len(new_lines))]
    else:
        matcher = SequenceMatcher(None, old_lines, new_lines, autojunk=False)
        blocks = [(a, b, c, d) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
    hunks = []
    for low, high, first, last in blocks:
        before, after = "".join(old_lines[low:high]), "".join(new_lines[first:last])
        if before.split() != after.split():
            hunks.append(Hunk(path, start + low, before, after, predicted))
    return tuple(hunks)


def _changed_lines(old: str, new: str) -> tuple[int, list[str], list[str]]:
    """The first line that differs, and the lines of both texts from there to the last that differs."""
    prefix = common_prefix(old, new)
    begin = max(old.rfind("\n", 0, prefix), old.rfind("\r", 0, prefix)) + 1
    # Between a CR and an LF there is no line to begin.
    if begin and old[begin - 1] == "\r" and "\n" in (old[begin : begin + 1], new[begin : begin + 1]):
        begin = max(old.rfind("\n", 0, begin - 1), old.rfind("\r", 0, begin - 1)) + 1
    suffix = common_prefix(old[begin:][::-1], new[begin:][::-1])
    # What both have in common behind the next line end is left out; a CR LF is kept whole.
    end = old.find("\n", len(old) - suffix) + 1
    rest = len(old) - end if end else 0
    old_lines = split_lines(old[begin : len(old) - rest])
    new_lines = split_lines(new[begin : len(new) - rest])
    while old_lines and new_lines and old_lines[-1] == new_lines[-1]:
        old_lines.pop()
        new_lines.pop()
    return len(split_lines(old[:begin])) - 1, old_lines, new_lines
