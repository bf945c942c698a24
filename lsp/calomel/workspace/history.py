"""The diff stream: every change of every document, as the edits that a person would name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from calomel.prompts.differences import SIZE_LIMIT
from calomel.prompts.parts import Hunk
from calomel.workspace.change_log import ChangeLog, EditRecord, Origin
from calomel.workspace.documents import Document, TextChange
from calomel.workspace.episode import Episode, prompt_path, text_before

__all__ = ["EditRecord", "History", "LargeChange", "Origin"]

# A model reads the last few; more than these only cost memory and context.
MAX_HUNKS: Final = 48
MAX_CHARACTERS: Final = 32_768
# What is left when the bound is reached: after one long hop the front of the prompt stands still for long.
_KEPT_SHARE: Final = 0.5
_MAX_LARGE: Final = 16


@dataclass(frozen=True, slots=True)
class LargeChange:
    """What is known of a change that was too large to keep: how many lines went and came, and when."""

    path: str
    removed_lines: int
    inserted_lines: int
    at: float


class History:
    """One for all documents.

    The stream is append-only: a hunk that was given out never changes and keeps its place, until a bound is reached and
    the older half is let go, or a document is forgotten.
    """

    def __init__(self) -> None:
        self._stream: list[Hunk] = []
        # The document of each hunk.
        self._uris: list[str] = []
        self._characters = 0
        self._open: Episode | None = None
        # The document of the open edit.
        self._document: Document | None = None
        self._logs: dict[str, ChangeLog] = {}
        self.large: list[LargeChange] = []
        # Counts the hops of the stream's beginning: whoever keeps a copy of the stream starts anew when it grows.
        self.hops = 0

    def record(self, document: Document, change: TextChange, origin: Origin, now: float) -> Origin:
        """Note a change; the document holds the text after it. Returns what the change was recognised as."""
        log = self._logs.setdefault(document.uri, ChangeLog())
        if max(len(change.inserted), len(change.removed)) > SIZE_LIMIT:
            origin = Origin.EXTERNAL
        origin = log.classify(change, origin)
        log.add(change, origin, now)
        if origin is Origin.EXTERNAL:
            self._settle_before(document, change)
            self._note_large(document, change, now)
            return origin
        predicted = origin is Origin.PREDICTED
        if self._open is not None and self._open.takes(document, change, predicted=predicted):
            self._open.add(document, change, now)
        else:
            self._settle_before(document, change)
            self._open = Episode(document, change, predicted=predicted, now=now)
            self._document = document
        return origin

    def settled(self) -> tuple[Hunk, ...]:
        """The append-only stream, oldest first. The edit that is being made is not in it."""
        return tuple(self._stream)

    def open_edit(self) -> tuple[Hunk, ...]:
        """The edit that is being made, as it stands; empty when there is none."""
        if self._open is None or self._document is None:
            return ()
        return self._open.hunks(self._document.text)

    def settle(self) -> None:
        """The edit that is being made is finished: the user went to another file, or saved."""
        if self._open is not None:
            self._append(self._open.uri, self.open_edit())
        self._open = None

    @property
    def uris(self) -> frozenset[str]:
        """The documents that have edits in the stream, the one that is being made included."""
        return frozenset(self._uris) | (frozenset() if self._open is None else {self._open.uri})

    def forget(self, uri: str) -> None:
        """Nothing of a document may be told any more, whatever was given out before."""
        if self._open is not None and self._open.uri == uri:
            self._open = None
        self._logs.pop(uri, None)
        if uri in self._uris:
            kept = [(hunk, of) for hunk, of in zip(self._stream, self._uris, strict=True) if of != uri]
            self._stream, self._uris = [hunk for hunk, _ in kept], [of for _, of in kept]
            self._characters = sum(map(_size, self._stream))
            self.hops += 1

    def closed(self, document: Document) -> None:
        """A document was closed; its settled edits stay."""
        if self._open is not None and self._open.uri == document.uri:
            self.settle()
        self._logs.pop(document.uri, None)

    def recent_edits(self, uri: str, limit: int = 16) -> tuple[EditRecord, ...]:
        """The latest changes of a document, newest first, where they are in the current text."""
        return tuple(self._logs.get(uri, ChangeLog()))[:limit]

    def _settle_before(self, document: Document, change: TextChange) -> None:
        """Settle the open edit as it was before `change`, which is not part of it."""
        if self._open is None:
            return
        if self._open.uri == document.uri:
            self._append(document.uri, self._open.hunks(text_before(document, change)))
        else:
            self._append(self._open.uri, self.open_edit())
        self._open = None

    def _append(self, uri: str, hunks: tuple[Hunk, ...]) -> None:
        self._stream += hunks
        self._uris += [uri] * len(hunks)
        self._characters += sum(map(_size, hunks))
        if len(self._stream) <= MAX_HUNKS and self._characters <= MAX_CHARACTERS:
            return
        while self._stream and (
            len(self._stream) > MAX_HUNKS * _KEPT_SHARE or self._characters > MAX_CHARACTERS * _KEPT_SHARE
        ):
            self._characters -= _size(self._stream.pop(0))
            del self._uris[0]
        self.hops += 1

    def _note_large(self, document: Document, change: TextChange, now: float) -> None:
        lines = change.removed.count("\n"), change.inserted.count("\n")
        self.large.append(LargeChange(prompt_path(document), *lines, now))
        del self.large[:-_MAX_LARGE]


def _size(hunk: Hunk) -> int:
    return len(hunk.before) + len(hunk.after)
