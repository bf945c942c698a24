"""A document in an editor of one's own, with everything that listens to it."""

from __future__ import annotations

from collections.abc import Sequence

from calomel.workspace.documents import Document, RangeChange
from calomel.workspace.history import Listener, Origin


class Editor:
    """Opens one document and edits it by offsets."""

    def __init__(
        self,
        text: str,
        language_id: str = "python",
        listeners: Sequence[Listener] = (),
        path: str | None = None,
        uri: str = "file:///work/file.py",
    ) -> None:
        self.document = Document(uri, language_id, 1, text, path)
        self.listeners = listeners
        for listener in listeners:
            listener.opened(self.document)

    def replace(self, start: int, end: int, text: str) -> None:
        document = self.document
        change = document.apply(RangeChange(document.position_at(start), document.position_at(end), text))
        if change is not None:
            for listener in self.listeners:
                listener.changed(document, change, Origin.TYPED)

    def type(self, before: str, text: str) -> int:
        """Insert `text` in front of `before`, one character at a time; the offset behind it."""
        at = self.document.text.index(before)
        for character in text:
            self.replace(at, at, character)
            at += 1
        return at
