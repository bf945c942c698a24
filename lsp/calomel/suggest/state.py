"""What is known of one document, made and dropped with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from calomel.suggest.cache import Cache
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.offers import SuggestionPlace
from calomel.suggest.recent import RecentEdits
from calomel.workspace.documents import Document, TextChange
from calomel.workspace.edits import Planned
from calomel.workspace.history import Origin
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


class DocumentState:
    """What is known of one document, kept up to date with its changes.

    Attributes:
        recent: the user's recent edits.
        cursors: whether there are several.
        cache: the last answers.
        extended: the last suggestion here was accepted, so the next region is larger.
        unlikely: the revision and the drafts for which no edit from elsewhere was offered here.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.recent = RecentEdits(clock)
        self.cursors = Cursors()
        self.cache = Cache()
        self.extended = False
        self.unlikely: tuple[int, tuple[EditDraft, ...]] | None = None
        self._clock = clock
        self._content: tuple[bool, str, float] | None = None
        # Once something else changes on its lines or next to them, a rejected suggestion may be offered again.
        self._rejections: list[SuggestionPlace] = []

    def changed(
        self, change: TextChange, origin: Origin, version: int | None, *, continues: bool, by_keys: bool
    ) -> None:
        """Follow a change, which `continues` the last edit; `by_keys`: it may be typed."""
        self.cursors.changed(version, change, by_keys=by_keys)
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
