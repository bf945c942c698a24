"""What is known of one document, made and dropped with it, and carried forward when somebody asks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from calomel.suggest.cache import Cache, Entry
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.offers import SuggestionPlace
from calomel.suggest.recent import RecentEdits
from calomel.workspace.documents import Document, LoggedChange, Origin, TextChange
from calomel.workspace.edits import Planned
from calomel.workspace.privacy import content_refusal


@dataclass(slots=True)
class Cursors:
    """The changes of one document in the last message from the editor.

    Attributes:
        version: of the document before these changes.
        last: the last of them.
        several: some of them are alike, at separate places.
        places: start and end of each of them in the text after all of them.
    """

    version: int | None = None
    last: TextChange | None = None
    several: bool = False
    places: list[tuple[int, int]] = field(default_factory=list)

    def changed(self, version: int | None, change: TextChange, *, by_keys: bool = True) -> None:
        """One change; all changes of one message have the same version, that of the document before it.

        `by_keys`: it may be typed; an accepted suggestion or an undo is not.
        """
        same_message = version is not None and version == self.version and self.last is not None
        if not by_keys:
            self.several = False
        elif same_message and self.last is not None:
            alike = change.inserted == self.last.inserted and len(change.removed) == len(self.last.removed)
            self.several = self.several or (alike and not _continues(self.last, change))
        else:
            self.several = False
        end = change.start + len(change.inserted)
        by = end - change.end
        moved = [
            (start + by, stop + by) if change.end <= start else (start, stop)
            for start, stop in (self.places if same_message else ())
        ]
        self.places = [*moved, (change.start, end)]
        self.version, self.last = version, change

    def several_at(self, offset: int) -> bool:
        """Whether several cursors type, one of them at `offset`; if none is there, a formatter made the changes."""
        return self.several and any(start <= offset <= end for start, end in self.places)


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
        cursors: whether there are several.
        cache: the last answers.
        extended: the last suggestion here was accepted, so the next region is larger.
        unlikely: the revision and the drafts for which no edit from elsewhere was offered here.
    """

    def __init__(self, clock: Callable[[], float], revision: int = 0) -> None:
        self.revision = revision
        self.recent = RecentEdits(clock)
        self.cursors = Cursors()
        self.cache = Cache()
        self.extended = False
        self.unlikely: tuple[int, tuple[EditDraft, ...]] | None = None
        self._clock = clock
        self._content: tuple[bool, str, float] | None = None
        # Revisions whose change continued the last edit.
        self._continued: deque[int] = deque(maxlen=_CONTINUED)
        # Once something else changes on its lines or next to them, a rejected suggestion may be offered again.
        self._rejections: list[SuggestionPlace] = []

    def follow(self, document: Document) -> bool:
        """Carry all of it forward to the document's text; False if it is too old for that."""
        changes = document.since(self.revision)
        for each in changes or ():
            self.revision += 1
            self._changed(each)
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
        by_keys = origin is Origin.TYPED and not logged.along
        self.cursors.changed(logged.version, change, by_keys=by_keys)
        self.cache.changed(change, continues=continues)
        if origin in {Origin.UNDO, Origin.EXTERNAL}:
            self.cache.clear("edit")  # it followed from an edit that is gone
        for place in self._rejections:
            place.changed(change)

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
