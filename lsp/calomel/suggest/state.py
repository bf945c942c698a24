"""What is known of one document, made and dropped with it, and carried forward when somebody asks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Final

from calomel.suggest.cache import Cache, Entry
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.offers import SuggestionPlace
from calomel.suggest.recent import RecentEdits
from calomel.workspace.documents import Document, LoggedChange, Origin, TextChange
from calomel.workspace.edits import Planned
from calomel.workspace.privacy import content_refusal


def several_cursors(message: Sequence[LoggedChange], offset: int) -> bool:
    """Whether several cursors type, one of them at `offset`; if none is there, a formatter made the changes.

    Args:
        message: the changes of the editor's last message: alike, at separate places, and none of a suggestion or an
            undo.
        offset: in the text after all of them.
    """
    several, places = False, list[tuple[int, int]]()
    for before, logged in zip((None, *message), message, strict=False):
        change, by_keys = logged.change, logged.origin is Origin.TYPED and not logged.along
        if before is not None:
            last = before.change
            alike = change.inserted == last.inserted and len(change.removed) == len(last.removed)
            several = several or (alike and not _continues(last, change))
        several = several and by_keys
        end = change.start + len(change.inserted)
        by = end - change.end
        places = [(low + by, high + by) if change.end <= low else (low, high) for low, high in places]
        places.append((change.start, end))
    return several and any(low <= offset <= high for low, high in places)


def _continues(before: TextChange, change: TextChange) -> bool:
    """Whether a change touches the result of the one before it: a repeated key, sent in one message."""
    return change.end >= before.start and change.start <= before.start + len(before.inserted)


# The same number as in Copilot.
_REMEMBERED: Final = 20
_LOOK_AGAIN_SECONDS: Final = 5.0
# As many as a document remembers in all, in the worst case.
_CONTINUED: Final = 256


class DocumentState:
    """What is known of one document. It is carried forward to the current text when somebody asks, by `follow`.

    Attributes:
        revision: of the document, that all of it belongs to.
        recent: the user's recent edits.
        cache: the last answers.
        extended: the last suggestion here was accepted, so the next region is larger.
        unlikely: the revision and the drafts for which no edit from elsewhere was offered here.
    """

    def __init__(self, clock: Callable[[], float], revision: int = 0) -> None:
        self.revision = revision
        self.recent = RecentEdits(clock)
        self.cache = Cache()
        self.extended = False
        self.unlikely: tuple[int, tuple[EditDraft, ...]] | None = None
        self._clock = clock
        self._content: tuple[bool, str, float] | None = None
        # Revisions whose change continued the last edit.
        self._continued: deque[int] = deque(maxlen=_CONTINUED)
        # Once something else changes on its lines or next to them, a rejected suggestion may be offered again.
        self._rejections: list[SuggestionPlace] = []
        # The last change that accepted a suggestion, in offsets of the present text, and whether it was taken back.
        self._accepted: Planned | None = None
        self._taken_back = False

    def follow(self, document: Document) -> bool:
        """Carry all of it forward to the document's text; False if it is too old for that."""
        changes = document.since(self.revision)
        for each in changes or ():
            self.revision += 1
            self._changed(each)
        if self._accepted is not None and self._taken_back:
            self.reject(document.text, (self._accepted,))
            self._accepted, self._taken_back = None, False
        return changes is not None

    def carried(self, entry: Entry, document: Document, revision: int) -> None:
        """Carry an answer forward that was made for the text of `revision`; `follow` comes first."""
        changes = document.since(revision)
        if changes is None:
            entry.edits = None
            return
        for number, each in enumerate(changes, revision + 1):
            entry.changed(each.change, continues=number in self._continued)

    def continued(self, revisions: Collection[int]) -> bool:
        """Whether a change that made one of these revisions continued the last edit."""
        return any(each in self._continued for each in revisions)

    def _changed(self, logged: LoggedChange) -> None:
        change, origin = logged.change, logged.origin
        continues = self.recent.changed(change, logged.when)
        if continues:
            self._continued.append(self.revision)
        self.cache.changed(change, continues=continues)
        if origin in {Origin.UNDO, Origin.EXTERNAL}:
            self.cache.clear("edit")  # it followed from an edit that is gone
        for place in self._rejections:
            place.changed(change)
        self._remember(change, accepts=origin is Origin.PREDICTED)

    def _remember(self, change: TextChange, *, accepts: bool) -> None:
        """Keep track of what the last acceptance did, until a change undoes it, by whatever keys, or alters it."""
        last = self._accepted
        if accepts:
            self._accepted = Planned(change.start, change.start + len(change.removed), change.inserted, change.removed)
            self._taken_back = False
        elif last is not None:
            end = last.start if self._taken_back else last.start + len(last.text)
            if change.end < last.start:
                self._accepted = last.shifted(len(change.inserted) - len(change.removed))
            elif change.start <= end:
                back = (change.start, change.removed, change.inserted) == (last.start, last.text, last.removed)
                self._accepted, self._taken_back = (last if back else None), back

    def reject(self, text: str, edits: Sequence[Planned]) -> None:
        """The user rejected `edits` of the text."""
        if edits and all(edit.fits(text) for edit in edits):
            self._rejections.append(SuggestionPlace.with_lines(text, edits))
            del self._rejections[:-_REMEMBERED]

    def rejected(self, text: str, edits: Sequence[Planned]) -> bool:
        """Whether the user rejected these edits of the text, at least one, at this place."""
        place = SuggestionPlace.of(text, edits)
        return any(each.same(place, text) for each in self._rejections)

    def unfit(self, document: Document, *, wanted: bool) -> str:
        """Why the text is not one to work on; checked again every few seconds, not at each key.

        `wanted`: the user lets it in even if no person wrote it.
        """
        now = self._clock()
        if self._content is None or self._content[0] != wanted or now - self._content[2] > _LOOK_AGAIN_SECONDS:
            self._content = wanted, content_refusal(document.text, wanted=wanted) or "", now
        return self._content[1]
