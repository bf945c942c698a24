"""Code of other files that helps at a cursor: definitions, usages, imports, recent places, similar chunks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from calomel.prompts.parts import Excerpt
from calomel.workspace.clock import Clock
from calomel.workspace.documents import Document, TextChange
from calomel.workspace.history import Origin
from calomel.workspace.syntax import SyntaxTrees

Source = Literal["definition", "usage", "import", "recent", "similar"]


class Allowed(Protocol):
    """The answer about one file."""

    @property
    def allowed(self) -> bool:
        """Whether its text may be read and shown to a model."""


class Permission(Protocol):
    """What this module needs of `calomel.workspace.privacy.Privacy`; asked from several threads."""

    def allowed(self, path: Path) -> Allowed:
        """Whether the file may be read, and why not."""


@dataclass(frozen=True, slots=True)
class RankedExcerpt:
    """An excerpt, and why it is there.

    Attributes:
        excerpt: of another file than the cursor's.
        source: what led to it; of several the strongest.
        score: comparable within one answer alone; higher is better.
    """

    excerpt: Excerpt
    source: Source
    score: float


class Related:
    """A listener of the workspace that knows the code around it."""

    def __init__(
        self,
        syntax: SyntaxTrees,
        privacy: Permission | None = None,
        *,
        clock: Clock = time.monotonic,
        message: Callable[[str], None] | None = None,
    ) -> None:
        self._syntax = syntax
        self._privacy = privacy
        self._clock = clock
        self._message = message

    @property
    def ready(self) -> bool:
        """Whether every file of the folders has been read once."""
        return False

    @property
    def progress(self) -> tuple[int, int]:
        """Files read, and files found so far."""
        return 0, 0

    def start(self, folders: Sequence[Path], progress: Callable[[int, int], None] | None = None) -> None:
        """Read the folders in the background. `progress` is called from another thread."""

    def stop(self) -> None:
        """End the background work; may be called twice."""

    def excerpts(
        self, document: Document, offset: int, *, budget_seconds: float = 0.020, limit: int = 32
    ) -> tuple[RankedExcerpt, ...]:
        """What helps at the cursor, the best last; within the time, with what was found by then."""
        return ()

    def excerpts_for(self, document: Document, offset: int) -> tuple[Excerpt, ...]:
        """The excerpts alone, the best last."""
        return tuple(each.excerpt for each in self.excerpts(document, offset))

    def viewed(self, uri: str, start_line: int, end_line: int) -> None:
        """The user looked at these lines, `end_line` excluded."""

    def refresh(self, paths: Sequence[Path]) -> None:
        """The editor says that these files were created, changed or deleted."""

    def opened(self, document: Document) -> None:
        """The document was opened."""

    def changed(self, document: Document, change: TextChange, origin: Origin) -> None:
        """The document was changed: the place counts as recent."""

    def saved(self, document: Document) -> None:
        """The document was written: its file is read again."""

    def closed(self, document: Document) -> None:
        """The document was closed: its file counts again."""
