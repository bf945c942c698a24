"""Whether the user types with several cursors at once, which no protocol tells: the changes do."""

from __future__ import annotations

from dataclasses import dataclass

from calomel.suggest.planned import Change


@dataclass(slots=True)
class Cursors:
    """The last message's changes of one document."""

    version: int | None = None
    last: Change | None = None
    several: bool = False

    def changed(self, version: int | None, change: Change) -> None:
        """One change; all changes of one message come with the same version, the one before it."""
        same_message = version is not None and version == self.version and self.last is not None
        if same_message and self.last is not None:
            alike = change.inserted == self.last.inserted and len(change.removed) == len(self.last.removed)
            self.several = self.several or (alike and not _continues(self.last, change))
        else:
            self.several = False
        self.version, self.last = version, change


def _continues(before: Change, change: Change) -> bool:
    """Whether a change touches what the one before it left: one key repeated, sent in one message."""
    return change.end >= before.start and change.start <= before.start + len(before.inserted)
