"""What the suggester keeps of each open document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calomel.suggest.cursors import Cursors
from calomel.suggest.needs import PathRules, PathVerdict
from calomel.suggest.planned import Change
from calomel.suggest.recent import RecentEdits
from calomel.workspace.documents import Document

_LOOK_AGAIN_SECONDS: Final = 5.0


class DocumentState:
    """Grows with the document's changes.

    Attributes:
        recent: what the user did lately.
        cursors: whether there are several.
        extended: the last suggestion here was accepted: the next region is larger.
        content: what the ignore rules said of the text, and when.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.recent = RecentEdits(clock)
        self.cursors = Cursors()
        self.extended = False
        self.content: tuple[PathVerdict, float] | None = None
        self._clock = clock

    def changed(self, version: int | None, change: Change, *, by_keys: bool = True) -> None:
        """Take in one change, which only the user's keys make at several cursors."""
        self.recent.changed(change)
        self.cursors.changed(version, change, by_keys=by_keys)

    def content_verdict(self, rules: PathRules, document: Document) -> PathVerdict:
        """Whether the text is one that a person wrote; looked at anew every few seconds, not at each key."""
        now = self._clock()
        if self.content is None or now - self.content[1] > _LOOK_AGAIN_SECONDS:
            self.content = rules.allowed_text(document.text), now
        return self.content[0]
