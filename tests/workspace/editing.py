"""A workspace of one's own, with everything that listens to it."""

from __future__ import annotations

from collections.abc import Sequence

from calomel.workspace.documents import Document, Position, RangeChange
from calomel.workspace.history import Listener
from calomel.workspace.workspace import Workspace

URI = "file:///w/a.py"


class Editor:
    """Opens documents and edits the last one; its clock is moved by hand."""

    def __init__(self, text: str = "", language_id: str = "python", listeners: Sequence[Listener] = ()) -> None:
        self.now = 0.0
        self.workspace = Workspace((), lambda: self.now)
        self.workspace.listeners += listeners
        self.version = 0
        self.document = self.open(text, language_id)

    def open(self, text: str, language_id: str = "python", uri: str = URI) -> Document:
        self.version += 1
        self.document = self.workspace.open(uri, language_id, self.version, text)
        return self.document

    def replace(self, start: int, end: int, text: str) -> None:
        self.change(self.document.position_at(start), self.document.position_at(end), text)

    def change(self, start: Position, end: Position, text: str) -> None:
        self.version += 1
        self.workspace.change(self.document.uri, self.version, [RangeChange(start, end, text)])
