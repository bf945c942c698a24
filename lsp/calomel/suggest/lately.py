"""What kind of work is going on: somebody writes, or changes here and there what is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calomel.selectivity.proposal import Recent


@dataclass(frozen=True, slots=True)
class Lately:
    """The edits of the last minute, keystrokes in a row being one.

    Attributes:
        edits: how many.
        replacements: of them, those that removed and inserted.
        inserted: characters in all.
        removed: characters in all.
        last_inserted: characters, of the last one.
        last_removed: characters, of the last one.
    """

    edits: int = 0
    replacements: int = 0
    inserted: int = 0
    removed: int = 0
    last_inserted: int = 0
    last_removed: int = 0


def lately(recent: Sequence[Recent]) -> Lately:
    """Of edits, oldest first."""
    last = recent[-1] if recent else Recent(0, 0, "", "")
    return Lately(
        edits=len(recent),
        replacements=sum(bool(done.removed and done.inserted) for done in recent),
        inserted=sum(len(done.inserted) for done in recent),
        removed=sum(len(done.removed) for done in recent),
        last_inserted=len(last.inserted),
        last_removed=len(last.removed),
    )
