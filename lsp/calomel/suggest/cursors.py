"""Whether the user types with several cursors at once, which no protocol tells: the changes do."""

from __future__ import annotations

from dataclasses import dataclass, field

from calomel.suggest.planned import Change


@dataclass(slots=True)
class Cursors:
    """The last message's changes of one document.

    Attributes:
        version: of the document before them.
        last: the last of them.
        several: some of them are alike, at places apart from each other.
        places: from where to where each of them is in the text behind all.
    """

    version: int | None = None
    last: Change | None = None
    several: bool = False
    places: list[tuple[int, int]] = field(default_factory=list)

    def changed(self, version: int | None, change: Change, *, by_keys: bool = True) -> None:
        """One change; all changes of one message come with the same version, the one before it.

        `by_keys`: it may be the work of keys, which a taken suggestion and an undone change are not.
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
        """Whether several cursors type, one of them at `offset`; where there is none, a formatter made the changes."""
        return self.several and any(start <= offset <= end for start, end in self.places)


def _continues(before: Change, change: Change) -> bool:
    """Whether a change touches what the one before it left: one key repeated, sent in one message."""
    return change.end >= before.start and change.start <= before.start + len(before.inserted)
