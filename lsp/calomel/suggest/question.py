"""What a model is asked, as the editor's side knows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from calomel.prompts.parts import Hunk, RegionBounds
from calomel.selectivity.proposal import Recent
from calomel.suggest.recent import Past
from calomel.workspace.workspace import Situation


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


@dataclass(frozen=True, slots=True)
class Question:
    """What a question is about, as it was when it was asked.

    Attributes:
        text: of the document, unmasked; never leaves the editor's side.
        situation: the same masked, with everything else a prompt is made of.
        trigger: what made the editor ask.
        recent: what the user did lately.
        past: what the last edits of this document did, however long ago, and which were taken back.
        since_edit: seconds since the last change.
        decisions: how many of the last suggestions were accepted, and how many rejected.
        max_tokens: of an answer.
        context_tokens: of a prompt.
        mask: masks secrets in a text.
        region: how much the model may rewrite at once.
        making: the edit that is being made, masked. It has not settled, but it says most about the next one.
        place: where the cursor stands: `code`, `comment` or `string`; empty where nobody can tell.
        errors: how many places of the document its grammar does not understand, and how many with `start:end` replaced
            by a text; None where nobody can tell.
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
