"""Everything is done: nothing is left to change, neither here nor elsewhere."""

from __future__ import annotations

import random

from calomel.training.edits.past import past_of, places_of
from calomel.training.edits.places import asked
from calomel.training.edits.scene import Focus, Scene
from calomel.training.edits.story import Story

_KIND = "silence:finished"


def silence_finished(story: Story, rng: random.Random) -> Scene | None:
    """The moment behind the last change."""
    text = story.states()[-1]
    places = places_of(story.changes)
    cursor = Focus(places[0], _KIND, cursor=True)
    focuses = asked(text, (), [cursor], places[1:], _KIND, 1, rng)
    return Scene(story.language, story.path, text, past_of(story, rng).hunks(story.changes), (), focuses)
