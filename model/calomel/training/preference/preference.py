"""One judged answer: what was asked, what was answered, and whether it should become likelier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calomel.prompts.parts import PromptParts

Kind = Literal["fill", "edit"]


class AlignmentError(ValueError):
    """There is nothing to learn from, or a run cannot go on; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Preference:
    """An answer to a question, and what somebody thought of it.

    Attributes:
        parts: what the model saw.
        kind: `fill` puts text into a hole, `edit` rewrites the region of `parts`.
        answer: the text of the hole, or what the region becomes. Silence is an empty hole, or the region as it is.
        desirable: it should become likelier; otherwise less likely.
        weight: of its loss, beside the others'.
        group: what it shares with preferences that must not be split from it, as the ones of one file.
        max_context: tokens of prompt at most, as the question said; 0 where it said nothing.
    """

    parts: PromptParts
    kind: Kind
    answer: str
    desirable: bool
    weight: float = 1.0
    group: str = ""
    max_context: int = 0

    @property
    def silent(self) -> bool:
        """The answer leaves everything as it is."""
        return self.answer == silence(self.parts)


def silence(parts: PromptParts) -> str:
    """The answer that leaves everything as it is."""
    return "" if parts.region is None else parts.region.text
