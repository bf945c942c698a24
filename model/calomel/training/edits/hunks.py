"""The diff stream of changes, as an editor's session would have recorded it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from calomel.prompts.differences import text_hunks
from calomel.prompts.parts import Hunk
from calomel.training.edits.story import Change

# Changes that are at most so many lines from the latest one belong to one edit.
_LINE_SPAN: Final = 8


@dataclass(frozen=True, slots=True)
class Step:
    """One change, and whether the person paused before it."""

    change: Change
    paused: bool = True


def stream(path: str, text: str, steps: Sequence[Step]) -> tuple[Hunk, ...]:
    """All hunks of the steps, oldest first; those of the last edit, which is still open, come last.

    Neighbouring steps are one edit, in which only the last pause is remembered. `text` is the one before the first
    step.
    """
    hunks: list[Hunk] = []
    base, middle = text, None
    latest: int | None = None
    for step in steps:
        change = step.change
        first = text.count("\n", 0, change.start)
        last = first + text.count("\n", change.start, change.end)
        if latest is None or first > latest + _LINE_SPAN or last < latest - _LINE_SPAN:
            hunks += _edit(path, base, middle, text)
            base, middle = text, None
            latest = first
        else:
            middle = text if step.paused else middle
            latest = first + change.text.count("\n")
        text = change.apply(text)
    return (*hunks, *_edit(path, base, middle, text))


def _edit(path: str, base: str, middle: str | None, text: str) -> list[Hunk]:
    states = [base, text] if middle is None else [base, middle, text]
    return [hunk for old, new in pairwise(states) for hunk in text_hunks(path, old, new)]
