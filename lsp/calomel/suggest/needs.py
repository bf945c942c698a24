"""What a suggester needs of the rest of the house, so that it can be tried without it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from calomel.prompts.parts import PromptParts
from calomel.workspace.documents import Document
from calomel.workspace.workspace import Situation


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
