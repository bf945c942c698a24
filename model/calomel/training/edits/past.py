"""What the person did before: sometimes an edit that has nothing to do with the story."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from calomel.prompts.parts import Hunk
from calomel.training.edits.aimless import aimless_edit
from calomel.training.edits.hunks import Step, stream
from calomel.training.edits.story import Change, Story

_EARLIER_SHARE: Final = 0.3
# Most people stop to think between two changes; some type on.
_PAUSE_SHARE: Final = 0.85


@dataclass(frozen=True, slots=True)
class Past:
    """The file before anything was done, and what was done before the story."""

    path: str
    text: str
    steps: tuple[Step, ...]
    paused: tuple[bool, ...]

    def hunks(self, changes: Iterable[Change]) -> tuple[Hunk, ...]:
        """The diff stream behind these changes of the story."""
        steps = [Step(change, self.paused[at % len(self.paused)]) for at, change in enumerate(changes)]
        return stream(self.path, self.text, [*self.steps, *steps])


def past_of(story: Story, rng: random.Random) -> Past:
    """Draw what came before a story."""
    # A prime number, so that the pattern does not follow that of the changes.
    paused = tuple(rng.random() < _PAUSE_SHARE for _ in range(7))
    back = aimless_edit(story.text, story.language, rng) if rng.random() < _EARLIER_SHARE else None
    if back is None:
        return Past(story.path, story.text, (), paused)
    # The edit backwards leads from another text to the story's own.
    forth = Change(back.start, back.start + len(back.text), story.text[back.start : back.end])
    return Past(story.path, back.apply(story.text), (Step(forth),), paused)


def moved(offset: int, changes: Iterable[Change]) -> int:
    """Where an offset is behind some changes, made one behind the other; inside of one: where that begins."""
    for change in changes:
        if offset >= change.end:
            offset += len(change.text) - (change.end - change.start)
        elif offset > change.start:
            offset = change.start
    return offset


def places_of(changes: tuple[Change, ...]) -> list[int]:
    """Where changes ended, in the text behind all of them; the latest first."""
    found = [moved(change.start + len(change.text), changes[at + 1 :]) for at, change in enumerate(changes)]
    return found[::-1]
