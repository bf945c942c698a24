"""The person is deleting: what just went must not come back."""

from __future__ import annotations

import random
import re
from typing import Final

from calomel.training.edits.aimless import lines_of
from calomel.training.edits.past import past_of, places_of
from calomel.training.edits.places import asked
from calomel.training.edits.scene import Focus, Scene
from calomel.training.edits.story import Change, Story

_KIND: Final = "silence:deleting"
_WORD: Final = re.compile(r"\w+|[^\w\s]+")
_TRIES: Final = 20
_SHORTEST: Final = 8
# The rest may be a whole line, or some.
_TAIL_SHARE: Final = 0.7
_MOST_LINES: Final = 3


def silence_deleting(story: Story, rng: random.Random) -> Scene | None:
    """A moment of deleting code that the story did not touch; None where there is none."""
    text = story.states()[-1]
    lines = lines_of(text)
    untouched = set(story.text.split("\n"))
    for _ in range(_TRIES):
        number = rng.randrange(len(lines))
        start, end = lines[number]
        line = text[start:end]
        if len(line.strip()) < _SHORTEST or line not in untouched:
            continue
        if rng.random() < _TAIL_SHARE:
            words = list(_WORD.finditer(line))[1:]
            if not words:
                continue
            at = rng.choice(words)
            inside = rng.randrange(len(at[0])) if rng.random() < 1 / 3 else 0
            edit = Change(start + at.start() + inside, end, "")
        else:
            last = min(number + rng.randrange(_MOST_LINES), len(lines) - 1)
            if any(text[begin:stop] not in untouched for begin, stop in lines[number : last + 1]):
                continue
            edit = Change(start, min(lines[last][1] + 1, len(text)), "")
        now = edit.apply(text)
        made = (*story.changes, edit)
        cursor = Focus(edit.start, _KIND, cursor=True)
        focuses = asked(now, (), [cursor], places_of(made)[1:], _KIND, rng.choice((0, 1)), rng)
        return Scene(story.language, story.path, now, past_of(story, rng).hunks(made), (), focuses)
    return None
