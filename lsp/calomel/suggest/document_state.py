"""What the suggester keeps of each open document."""

from __future__ import annotations

from collections.abc import Callable

from calomel.suggest.cursors import Cursors
from calomel.suggest.planned import Change
from calomel.suggest.recent import RecentEdits


class DocumentState:
    """Grows with the document's changes.

    Attributes:
        recent: what the user did lately.
        cursors: whether there are several.
        extended: the last suggestion here was accepted: the next region is larger.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.recent = RecentEdits(clock)
        self.cursors = Cursors()
        self.extended = False

    def changed(self, version: int | None, change: Change) -> None:
        """Take in one change."""
        self.recent.changed(change)
        self.cursors.changed(version, change)
