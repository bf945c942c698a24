"""Where a question points to: its document and offset here, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from calomel.lsp.text_sync import TextSync
from calomel.suggest.edit import Suggestion
from calomel.suggest.question import Trigger
from calomel.suggest.silence import Silence, SilenceReason
from calomel.workspace.documents import Document, Encoding, Position
from calomel.workspace.workspace import Workspace

_LOST: Final = "The editor and Calomel disagree about its text; close and open it again."


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in an open document."""

    document: Document
    offset: int


class Cursors:
    """Finds the place that a position names, and what brought the editor to ask about it."""

    def __init__(self, workspace: Workspace, sync: TextSync, encoding: Encoding) -> None:
        self.encoding = encoding
        self._workspace = workspace
        self._sync = sync
        self._asked: dict[str, int] = {}  # uri to the revision of the last question

    def find(self, uri: str, line: int, character: int) -> Cursor | Silence:
        """The place; a position beyond a line or the text is its end, as the specification says."""
        if self._sync.too_large(uri):
            return Silence.kept("too_large")
        if self._sync.lost(uri):
            return Silence.of(SilenceReason.STALE, _LOST)
        document = self._workspace.documents.get(uri)
        if document is None:
            return Silence.of(SilenceReason.UNKNOWN_DOCUMENT)
        return Cursor(document, document.offset_at(Position(line, character), self.encoding))

    def trigger(self, document: Document, *, invoked: bool) -> Trigger:
        """The protocol tells a key pressed for it from the rest; an edit from a mere move, the revision does."""
        before = self._asked.get(document.uri)
        self._asked[document.uri] = document.revision
        if invoked:
            return Trigger.EXPLICIT
        return Trigger.CURSOR if before == document.revision else Trigger.EDIT

    def fits(self, suggestion: Suggestion, document: Document) -> bool:
        """Whether a suggestion refers to the present text, in the document that was asked about."""
        present = self._workspace.documents.get(document.uri)
        return present is document and suggestion.revision == document.revision and not self._sync.lost(document.uri)

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._asked.pop(uri, None)
