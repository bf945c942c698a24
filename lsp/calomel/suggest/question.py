"""What a model is asked, as the editor's side knows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from calomel.prompts.parts import Hunk, PromptParts, RegionBounds
from calomel.selectivity.proposal import Recent
from calomel.suggest.recent import Past
from calomel.workspace.documents import Document
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


class Built(Protocol):
    """A prompt's data; `calomel.context.builder.BuiltContext` is one."""

    @property
    def parts(self) -> PromptParts:
        """What the model sees."""


class Builder(Protocol):
    """Chooses what the model sees; `calomel.context.builder.ContextBuilder` is one."""

    def build(self, situation: Situation, budget: int) -> Built:
        """The prompt's data within `budget` tokens."""


class PathVerdict(Protocol):
    """Whether a file may be read; `calomel.workspace.privacy.Verdict` is one."""

    @property
    def allowed(self) -> bool:
        """It may."""

    @property
    def reason(self) -> str:
        """By which rule not."""


@runtime_checkable
class PathRules(Protocol):
    """Ignore rules; `calomel.workspace.privacy.Privacy` has them."""

    def allowed(self, path: Path | None, language_id: str | None = None) -> PathVerdict:
        """Whether a model may see the file."""

    def allowed_text(self, text: str) -> PathVerdict:
        """Whether the content is one that a person wrote."""


class SyntaxErrors(Protocol):
    """How many places of a document its grammar does not understand, and how many with an edit made."""

    def __call__(self, start: int, end: int, text: str) -> tuple[int, int] | None:
        """With `start:end` replaced by `text`; None where nobody can tell, or when the document has changed."""


@runtime_checkable
class ErrorTest(Protocol):
    """Syntax; `calomel.workspace.syntax.SyntaxTrees` has it."""

    def errors_after(self, document: Document, start: int, end: int, text: str) -> tuple[int, int] | None:
        """Errors of the document, and with its characters from `start` to `end` replaced by `text`."""

    async def parse(self, document: Document) -> None:
        """Get ready for that; others have their turn meanwhile."""


@runtime_checkable
class CommentTest(Protocol):
    """Syntax; `calomel.workspace.syntax.SyntaxTrees` has it."""

    def in_comment_or_string(self, document: Document, offset: int) -> str | None:
        """`comment`, `string` or None."""
