"""Open, change, save, close: the editor's documents, kept in step by `calomel.workspace`.

A document that fell out of step (a wrong range, a version that goes backwards, a change before the open) is answered
with silence until the editor sends a whole text again, by a full change or by opening it anew; nothing is guessed. The
protocol has no way to ask for a text, so that the user is told, once a session.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from lsprotocol import types

from calomel.lsp.client import local_path
from calomel.workspace.documents import Change, FullChange, RangeChange, ResyncNeeded
from calomel.workspace.position import Position
from calomel.workspace.workspace import Workspace

LOG: Final = logging.getLogger(__name__)

LOST: Final = (
    "Calomel lost track of a document and is silent there until its text is sent again:"
    " close and open it, or reload it from its file."
)


class TextSync:
    """The handlers of text synchronization.

    Args:
        workspace: that holds the documents.
        warn: shows a sentence to the user.
    """

    def __init__(self, workspace: Workspace, warn: Callable[[str], None]) -> None:
        self._workspace = workspace
        self._warn = warn
        self._warned = False
        self._lost: dict[str, str] = {}  # uri to language id
        self.folders_changed: Callable[[tuple[Path, ...]], None] = workspace.set_folders

    def lost(self, uri: str) -> bool:
        """Whether the document here is not the editor's."""
        return uri in self._lost

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """Take over a document; one that is open already is replaced."""
        document = params.text_document
        if not _usable(document.uri):
            LOG.warning("ignored a document with a broken URI")
            return
        self._lost.pop(document.uri, None)
        self._workspace.open(document.uri, document.language_id, document.version, _clean(document.text))

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Apply changes in their order."""
        uri, version = params.text_document.uri, params.text_document.version
        changes = [_change(change) for change in params.content_changes]
        if uri in self._lost or self._workspace.documents.get(uri) is None:
            self._recover(uri, version, changes)
            return
        try:
            self._workspace.change(uri, version, changes)
        except ResyncNeeded as reason:
            self._lose(uri, str(reason))
            # What follows the wrong change may hold the whole text.
            self._recover(uri, version, changes)

    def saved(self, params: types.DidSaveTextDocumentParams) -> None:
        """The document is in its file now."""
        self._workspace.save(params.text_document.uri)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Let go of a document."""
        self._lost.pop(params.text_document.uri, None)
        self._workspace.close(params.text_document.uri)

    def folders(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        """Folders came and went."""
        removed = {local_path(folder.uri) for folder in params.event.removed}
        kept = [folder for folder in self._workspace.folders if folder not in removed]
        added = [path for folder in params.event.added if (path := local_path(folder.uri)) is not None]
        self.folders_changed(tuple(dict.fromkeys([*kept, *added])))

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
        language = self._lost.pop(uri, "") or ("" if document is None else document.language_id)
        self._workspace.open(uri, language, version, changes[last].text)
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
