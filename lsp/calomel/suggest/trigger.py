"""What made the editor ask, and what it told along with the question."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Trigger(StrEnum):
    """What made the editor ask.

    EDIT: the text changed. CURSOR: the cursor moved. EXPLICIT: the user pressed a key for it; debounce, cooldowns and
    memories of rejections do not hold it back.
    """

    EDIT = "edit"
    CURSOR = "cursor"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class Selected:
    """The item that is selected in the editor's completion popup: what `start:end` would become by accepting it."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A problem that the editor shows, as a hint of where the next edit may be. Offsets in the document's text."""

    start: int
    end: int
    message: str
    severity: str = "error"
