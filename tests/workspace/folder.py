"""A small project on disk, indexed by the real worker process, and documents opened in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from calomel.prompts.parts import Excerpt
from calomel.workspace.documents import Position, RangeChange
from calomel.workspace.privacy import Privacy
from calomel.workspace.related import Related
from calomel.workspace.syntax import SyntaxTrees
from calomel.workspace.workspace import Workspace

SECONDS = 30.0


class Folder:
    """A workspace over a folder. Use as a context manager: it ends the worker."""

    def __init__(self, root: Path, files: Mapping[str, str], *, watch: bool = False) -> None:
        self.root = root
        self.now, self.version = 0.0, 1
        self.messages: list[str] = []
        for name, text in files.items():
            self.write(name, text)
        privacy = Privacy([root])
        self.syntax = SyntaxTrees()
        self.related = Related(
            self.syntax, privacy, clock=lambda: self.now, message=self.messages.append, watch=watch
        )  # fmt: skip
        self.workspace = Workspace(
            [root], lambda: self.now, privacy=privacy, syntax=self.syntax, related=self.related
        )  # fmt: skip
        self.workspace.listeners += [self.syntax, self.related]

    def __enter__(self) -> Self:
        self.related.start([self.root])
        self.settle()
        return self

    def __exit__(self, *_: object) -> None:
        self.related.stop()

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def settle(self) -> None:
        assert self.related.indexer.wait(SECONDS), self.messages

    def open(self, name: str, language: str = "python") -> str:
        path = self.root / name
        self.workspace.open(path.as_uri(), language, 1, path.read_text(encoding="utf-8"))
        return path.as_uri()

    def type(self, name: str, line: int, column: int, text: str) -> None:
        """Insert a text into an open document."""
        place, uri = Position(line, column), (self.root / name).as_uri()
        self.version += 1
        self.workspace.change(uri, self.version, [RangeChange(place, place, text)])

    def ask(self, name: str, behind: str) -> tuple[Excerpt, ...]:
        """What helps behind the first occurrence of a text in an open document."""
        document = self.workspace.documents.get((self.root / name).as_uri())
        assert document is not None
        return self.related.excerpts(document, document.text.index(behind) + len(behind), budget_seconds=SECONDS)
