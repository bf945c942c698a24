"""What a model is asked, in the terms of the editor's side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from calomel.prompts.parts import Hunk, RegionBounds, line_end, line_start, region_around
from calomel.selectivity.proposal import Recent
from calomel.suggest.recent import Past
from calomel.workspace.workspace import Situation


class Trigger(StrEnum):
    """What made the editor ask.

    EDIT: the text changed. CURSOR: the cursor moved. EXPLICIT: the user pressed a key for it; debounce, cooldowns and
    earlier rejections do not hold it back.
    """

    EDIT = "edit"
    CURSOR = "cursor"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class Selected:
    """The selected item of the editor's completion popup: what `start:end` becomes if it is accepted."""

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


@dataclass(frozen=True, slots=True)
class Question:
    """A question, with the state of the document when it was asked.

    Attributes:
        text: of the document, unmasked; never leaves the editor's side.
        situation: the same text, masked, with everything else that goes into a prompt.
        trigger: what made the editor ask.
        recent: the user's recent edits.
        past: what the last edits of this document did, however long ago, and which of them were undone.
        since_edit: seconds since the last change.
        decisions: how many of the last suggestions were accepted, and how many rejected.
        max_tokens: limit of the answer.
        context_tokens: limit of the prompt.
        lines: limit of a text at the cursor; None without one.
        mask: masks secrets in a text.
        region: how much the model may rewrite at once.
        making: the edit in progress, masked. It has not settled, but says most about the next one.
        place: where the cursor is: `code`, `comment` or `string`; empty if unknown.
        errors: how many syntax errors the document has, and how many with `start:end` replaced by a text; None if
            unknown.
        scope: start and end of the function or class around an offset; None if there is none.
    """

    text: str
    situation: Situation
    trigger: Trigger
    recent: Sequence[Recent]
    since_edit: float | None
    decisions: tuple[int, int]
    max_tokens: int
    context_tokens: int
    mask: Callable[[str], str]
    region: RegionBounds = field(default_factory=RegionBounds)
    making: tuple[Hunk, ...] = ()
    place: str = ""
    errors: Callable[[int, int, str], tuple[int, int] | None] | None = None
    past: Past = field(default_factory=Past)
    scope: Callable[[int], tuple[int, int] | None] | None = None
    lines: int | None = None

    def region_at(self, place: int, bounds: RegionBounds) -> tuple[int, int]:
        """The lines around a place that a model rewrites: a whole function, or the whole text, if it is small."""
        text = self.text
        start, end = region_around(text, place, bounds)
        for first, last in ((0, len(text)), (self.scope and self.scope(place)) or (start, end)):
            low, high = min(start, line_start(text, first)), max(end, line_end(text, max(first, last - 1)))
            if text.count("\n", low, high) <= bounds.whole and high - low <= bounds.characters:
                return low, high
        return start, end
