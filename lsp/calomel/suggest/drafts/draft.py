"""A draft: an edit that would go on with the last edits. Whether it is meant is for the model to say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EditDraft:
    """Replace `start:end`, offsets in the document's text, by `text`.

    Attributes:
        start: where it begins.
        end: where what it replaces ends.
        text: what stands there then.
        maker: which rule made it.
        support: how many of the last edits agree with the rule; 1 for the edit that the rule was read from.
        likeness: how alike the place is to where the rule was read from, 0 to 1.
        alone: it is a change of its own: not to be offered together with others.
    """

    start: int
    end: int
    text: str
    maker: str
    support: int = 1
    likeness: float = 1.0
    alone: bool = False

    def apply(self, text: str) -> str:
        """The text after it."""
        return text[: self.start] + self.text + text[self.end :]
