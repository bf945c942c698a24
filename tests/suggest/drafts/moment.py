"""A moment after some edits, and what the drafts would make of the text."""

from __future__ import annotations

from collections.abc import Sequence

from calomel.prompts.parts import Hunk, text_hunks
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.drafts.propose import drafts


class Moment:
    """A text and the edits of it: each replaces the first place of a text by another one."""

    def __init__(self, text: str, *edits: tuple[str, str]) -> None:
        self.text = text
        self.cursor = 0
        self.hunks: tuple[Hunk, ...] = ()
        for old, new in edits:
            self.edit(old, new)

    def edit(self, old: str, new: str) -> Moment:
        at = self.text.index(old)
        after = self.text[:at] + new + self.text[at + len(old) :]
        self.hunks += text_hunks("a", self.text, after)
        self.text, self.cursor = after, at + len(new)
        return self

    def drafts(self, *makers: str) -> tuple[EditDraft, ...]:
        found = drafts(self.text, self.hunks, self.cursor)
        return tuple(draft for draft in found if not makers or draft.maker in makers)

    def results(self, *makers: str) -> list[str]:
        """The lines that each draft makes, best draft first."""
        return [lines(self.text, draft) for draft in self.drafts(*makers)]


def lines(text: str, draft: EditDraft) -> str:
    """The lines that a draft changes, as they are then; of inserted lines these alone."""
    start = text.rfind("\n", 0, draft.start) + 1
    end = text.find("\n", draft.end)
    end = len(text) if end < 0 else end
    if draft.start == draft.end == start and draft.text.endswith("\n"):
        return draft.text[:-1]
    return text[start : draft.start] + draft.text + text[draft.end : end]


def edited(text: str, drafts: Sequence[EditDraft]) -> str:
    """The text after drafts that do not touch each other."""
    for draft in sorted(drafts, key=lambda draft: draft.start, reverse=True):
        text = draft.apply(text)
    return text
