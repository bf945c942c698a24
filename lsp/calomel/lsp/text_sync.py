"""Open, change, save, close: the editor's documents, kept in sync in `calomel.workspace`.

For a document that fell out of sync (a wrong range, a version that goes backwards, a change before the open) nothing is
suggested until the editor sends the whole text again, by a full change or by opening it anew; nothing is guessed. The
protocol has no way to ask for a text, so the user is told, once per session. A text far larger than what a model reads
is not held at all: it would cost seconds and gigabytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from lsprotocol import types

from calomel.suggest.edit import Suggestion
from calomel.suggest.silence import Silence, SilenceReason
from calomel.workspace.documents import Change, Document, FullChange, Position, RangeChange, ResyncNeeded
from calomel.workspace.privacy import MAX_BYTES
from calomel.workspace.workspace import Workspace

LOG: Final = logging.getLogger(__name__)

# Characters. Up to here a document is kept in sync, so that one that shrinks is usable again at once.
MOST: Final = 2 * MAX_BYTES
LOST: Final = (
    "Calomel lost track of this document and suggests nothing in it: close and reopen it, or reload it from its file."
)


DISAGREE: Final = "The editor and Calomel disagree about its text; close and open it again."


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in an open document."""

    document: Document
    offset: int


class TextSync:
    """The handlers of text synchronization.

    Args:
        workspace: holds the documents.
        warn: shows a message to the user.
    """

    def __init__(self, workspace: Workspace, warn: Callable[[str], None]) -> None:
        self._workspace = workspace
        self._warn = warn
        self._warned = False
        self._lost: dict[str, str] = {}  # uri to language id
        self._large: set[str] = set()

    def lost(self, uri: str) -> bool:
        """Whether the document here differs from the editor's."""
        return uri in self._lost

    def find(self, uri: str, position: types.Position) -> Cursor | Silence:
        """The cursor at a position; one beyond a line or the text means its end, as the specification says."""
        if uri in self._large:
            return Silence.kept("too_large")
        if uri in self._lost:
            return Silence.of(SilenceReason.STALE, DISAGREE)
        document = self._workspace.documents.get(uri)
        if document is None:
            return Silence.of(SilenceReason.UNKNOWN_DOCUMENT)
        return Cursor(document, document.offset_at(position.line, position.character))

    def document(self, suggestion: Suggestion) -> Document | None:
        """The document of a suggestion; None when the suggestion does not refer to its current text."""
        present = self._workspace.documents.get(suggestion.uri)
        fits = present is not None and present.revision == suggestion.revision and suggestion.uri not in self._lost
        return present if fits else None

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """Add a document; one that is already open is replaced."""
        document = params.text_document
        if not _usable(document.uri):
            LOG.warning("ignored a document with a broken URI")
            return
        self._take(document.uri, document.language_id, document.version, document.text)

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Apply changes in order."""
        uri, version = params.text_document.uri, params.text_document.version
        changes = [_change(change) for change in params.content_changes]
        if uri in self._lost or self._workspace.documents.get(uri) is None:
            self._recover(uri, version, changes)
            return
        if any(len(change.text) > MOST for change in changes):
            self._let_go(uri)
            self._recover(uri, version, changes)
            return
        try:
            self._workspace.change(uri, version, changes)
        except ResyncNeeded as reason:
            self._lose(uri, str(reason))
            # What follows the invalid change may hold the whole text.
            self._recover(uri, version, changes)
        except BaseException:
            self._lose(uri, "a change failed")
            raise
        document = self._workspace.documents.get(uri)
        if document is not None and len(document) > MOST:
            self._let_go(uri)

    def misunderstood(self, params: object) -> None:
        """An unreadable change arrived: the text of its document, or of all if it names none, is not known any more."""
        document = params.get("textDocument") if isinstance(params, dict) else None
        uri = document.get("uri") if isinstance(document, dict) else None
        uris = list(self._workspace.documents)
        for each in (uri,) if isinstance(uri, str) else tuple(uris):
            if each in uris and each not in self._lost:
                self._lose(each, "a malformed change")

    def saved(self, params: types.DidSaveTextDocumentParams) -> None:
        """The document was written to its file."""
        self._workspace.save(params.text_document.uri)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Drop a document."""
        self._lost.pop(params.text_document.uri, None)
        self._large.discard(params.text_document.uri)
        self._workspace.close(params.text_document.uri)

    def _take(self, uri: str, language: str, version: int | None, text: str) -> None:
        """Start with a whole text."""
        if len(text) > MOST:
            self._lost[uri] = language
            self._let_go(uri)
            return
        self._lost.pop(uri, None)
        self._large.discard(uri)
        self._workspace.open(uri, language, version, _clean(text))

    def _let_go(self, uri: str) -> None:
        document = self._workspace.documents.get(uri)
        self._lost.setdefault(uri, "" if document is None else document.language_id)
        self._large.add(uri)
        self._workspace.close(uri)
        LOG.info("a document of more than %d characters is not kept", MOST)

    def _lose(self, uri: str, reason: str) -> None:
        document = self._workspace.documents.get(uri)
        self._lost[uri] = "" if document is None else document.language_id
        LOG.warning("a document is out of step: %s", reason)
        if not self._warned:
            self._warned = True
            self._warn(LOST)

    def _recover(self, uri: str, version: int, changes: list[Change]) -> None:
        """Start again from the last whole text among the changes, if there is one."""
        last = max((at for at, change in enumerate(changes) if isinstance(change, FullChange)), default=None)
        if last is None or not _usable(uri):
            if uri not in self._lost and _usable(uri):
                self._lose(uri, "a change came for a document that is not open")
            return
        document = self._workspace.documents.get(uri)
        if any(len(change.text) > MOST for change in changes[last:]):
            self._let_go(uri)
            return
        language = self._lost.get(uri, "") or ("" if document is None else document.language_id)
        self._take(uri, language, version, changes[last].text)
        LOG.info("a document is in step again")
        if changes[last + 1 :]:
            try:
                self._workspace.change(uri, None, changes[last + 1 :])
            except ResyncNeeded as reason:
                self._lose(uri, str(reason))


def _change(change: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return FullChange(_clean(change.text))
    start, end = change.range.start, change.range.end
    return RangeChange(Position(start.line, start.character), Position(end.line, end.character), _clean(change.text))


def _usable(uri: str) -> bool:
    try:
        return bool(urlsplit(uri).path)
    except ValueError:
        return False


def _clean(text: str) -> str:
    """`text` with lone surrogates replaced one for one: they have no UTF-8, and every length stays as it was."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    return text
