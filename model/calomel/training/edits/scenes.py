"""One moment of a story, drawn so that silence is right about as often as an edit is."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from calomel.training.edits.continued import continued
from calomel.training.edits.half_done import half_done
from calomel.training.edits.scene import Scene
from calomel.training.edits.silence_deleting import silence_deleting
from calomel.training.edits.silence_finished import silence_finished
from calomel.training.edits.silence_formatting import silence_formatting
from calomel.training.edits.silence_mid_word import silence_mid_word
from calomel.training.edits.silence_undo import silence_undo
from calomel.training.edits.silence_unrelated import silence_unrelated
from calomel.training.edits.story import Story

SceneMaker = Callable[[Story, random.Random], Scene | None]

# How often each is tried first. Most scenes with something to do ask about silent places too.
SCENES: Final[Mapping[SceneMaker, float]] = MappingProxyType(
    {
        continued: 0.46,
        half_done: 0.36,
        silence_finished: 0.06,
        silence_unrelated: 0.035,
        silence_deleting: 0.03,
        silence_undo: 0.02,
        silence_formatting: 0.015,
        silence_mid_word: 0.02,
    }
)


def scene_of(story: Story, rng: random.Random) -> Scene | None:
    """A moment of the story; None where none can be asked about."""
    left = dict(SCENES)
    while left:
        maker = rng.choices(list(left), list(left.values()))[0]
        scene = maker(story, rng)
        if scene is not None and scene.focuses:
            return scene
        del left[maker]
    return None
