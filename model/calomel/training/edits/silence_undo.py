"""The person took back what they had done: it must not be offered again."""

from __future__ import annotations

import random
from typing import Final

from calomel.training.edits.past import past_of
from calomel.training.edits.places import asked
from calomel.training.edits.scene import Focus, Scene
from calomel.training.edits.story import Change, Story

_KIND: Final = "silence:undo"
_MOST: Final = 3


def silence_undo(story: Story, rng: random.Random) -> Scene | None:
    """The moment behind taking back the first changes of a story, all of them."""
    count = rng.randint(1, min(_MOST, len(story.changes)))
    done = story.changes[:count]
    back = [
        Change(change.start, change.start + len(change.text), text[change.start : change.end])
        for change, text in zip(done, story.states(), strict=False)
    ][::-1]
    places = [change.start for change in story.changes[:count]]
    cursor = Focus(places[0] + len(back[-1].text), _KIND, cursor=True)
    # The story's other places are what would be offered; their offsets follow from going through it backwards.
    focuses = asked(story.text, (), [cursor], _unmoved(story), _KIND, 1, rng)
    return Scene(story.language, story.path, story.text, past_of(story, rng).hunks((*done, *back)), (), focuses)


def _unmoved(story: Story) -> list[int]:
    """Where the changes begin in the text before the first of them; roughly, where they touch each other."""
    found = []
    for at, change in enumerate(story.changes):
        offset = change.start
        for earlier in reversed(story.changes[:at]):
            if offset >= earlier.start + len(earlier.text):
                offset -= len(earlier.text) - (earlier.end - earlier.start)
            elif offset > earlier.start:
                offset = earlier.start
        found.append(offset)
    return found
