"""Some changes of a story are made, the next ones are to come."""

from __future__ import annotations

import random
from typing import Final

from calomel.prompts.region import line_start
from calomel.training.edits.past import past_of, places_of
from calomel.training.edits.places import asked
from calomel.training.edits.scene import Focus, Scene, is_silent, pending
from calomel.training.edits.story import Change, Story

# The person has gone to the next place already.
_GONE_SHARE: Final = 0.25
_FURTHER: Final = 2


def continued(story: Story, rng: random.Random) -> Scene | None:
    """A moment between two changes; None for a story of one."""
    if len(story.changes) == 1:
        return None
    done = rng.randrange(1, len(story.changes))
    text = story.states()[done]
    changes = pending(story.changes[done:])
    places = places_of(story.changes[:done])
    following = story.changes[done].start
    cursor = following if rng.random() < _GONE_SHARE else places[0]
    if is_silent(text, changes, cursor):
        wanted = [Focus(line_start(text, following), story.kind, cursor=False)]
        wanted += further(text, changes, story.kind, rng)
        wanted.append(Focus(cursor, "silence:done", cursor=True))
    else:
        here = Focus(cursor, story.kind, cursor=True)
        there = Focus(line_start(text, following), story.kind, cursor=False)
        wanted = [here, there, *further(text, changes, story.kind, rng)]
    focuses = asked(text, changes, wanted, places, "silence:elsewhere", rng.choice((0, 1)), rng)
    hunks = past_of(story, rng).hunks(story.changes[:done])
    return Scene(story.language, story.path, text, hunks, changes, focuses)


def further(text: str, changes: tuple[Change, ...], kind: str, rng: random.Random) -> list[Focus]:
    """Some other places that are to change."""
    chosen = rng.sample(changes, min(_FURTHER, len(changes)))
    return [Focus(line_start(text, change.start), kind, cursor=False) for change in chosen]
