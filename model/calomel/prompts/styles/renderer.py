"""What the side that asks a model needs of a style: a prompt, and the text of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from calomel.prompts.fim import FimTokens
from calomel.prompts.parts import PromptParts


class PromptRenderer(Protocol):
    """Writes prompts in one style and reads the answers to them. Safe to share."""

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """Token ids of at most `max_context`; what does not fit is left out, the farthest and oldest first."""

    def read(self, ids: Sequence[int], *, whole: bool = True) -> str:
        """The text of an answer; with `whole` false, the beginning of it that more tokens do not take back."""

    def shown(self, text: str) -> str:
        """The text of a canvas, parts of which are not known yet, as people may see it."""


class EndingRenderer(PromptRenderer, Protocol):
    """One whose answers may end otherwise than by the engine's end token."""

    def ended(self, ids: Sequence[int]) -> bool:
        """Whether an answer is over although no end token has come."""
