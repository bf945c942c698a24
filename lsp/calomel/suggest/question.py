"""What a model is asked, as the editor's side knows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from calomel.prompts.parts import Hunk, RegionBounds
from calomel.selectivity.proposal import Recent
from calomel.suggest.needs import SyntaxErrors
from calomel.suggest.recent import Past
from calomel.suggest.trigger import Trigger
from calomel.workspace.workspace import Situation


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
        errors: syntax errors of the document, and of it with an edit made; None where nobody can tell.
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
    errors: SyntaxErrors | None = None
    past: Past = field(default_factory=Past)
