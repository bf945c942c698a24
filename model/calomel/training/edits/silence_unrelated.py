"""The person makes a small edit that nothing follows from."""

from __future__ import annotations

import random

from calomel.training.edits.aimless import aimless_edit
from calomel.training.edits.past import moved, past_of, places_of
from calomel.training.edits.places import asked
from calomel.training.edits.scene import Focus, Scene
from calomel.training.edits.story import Story

_KIND = "silence:unrelated"


def silence_unrelated(story: Story, rng: random.Random) -> Scene | None:
    """The moment behind such an edit, with the story done before it or not begun; None where no line offers one."""
    begun = rng.random() < 0.5  # noqa: PLR2004 (either)
    text = story.states()[-1] if begun else story.text
    edit = aimless_edit(text, story.language, rng)
    if edit is None:
        return None
    made = (*story.changes, edit) if begun else (edit,)
    now = edit.apply(text)
    story_places = places_of(made)[1:] if begun else [moved(change.start, (edit,)) for change in story.changes[:2]]
    cursor = Focus(edit.start + len(edit.text), _KIND, cursor=True)
    focuses = asked(now, (), [cursor], [min(at, len(now)) for at in story_places], _KIND, 1, rng)
    return Scene(story.language, story.path, now, past_of(story, rng).hunks(made), (), focuses)
