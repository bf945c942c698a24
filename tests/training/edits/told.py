"""What the tests of makers share: ask until there is a story, and check what every story promises."""

from __future__ import annotations

import random
from collections.abc import Callable

from calomel.training.edits.source import Source
from calomel.training.edits.story import Story

SUFFIXES = {"python": "py", "typescript": "ts", "javascript": "js", "go": "go", "rust": "rs"}
Maker = Callable[[Source, random.Random], Story | None]


def source_of(language: str, text: str) -> Source:
    return Source(f"src/code.{SUFFIXES[language]}", language, text)


def told(maker: Maker, language: str, text: str, seeds: int = 60) -> list[Story]:
    """Different stories of a file, by their texts; each ends in a file that parses."""
    source = source_of(language, text)
    assert not source.has_error
    found: dict[tuple[str, str], Story] = {}
    for seed in range(seeds):
        story = maker(source, random.Random(seed))
        if story is not None:
            states = story.states()
            assert (story.kind, story.language, story.path) == (maker.__name__, language, source.path)
            assert states[0] != states[-1]
            assert not source.with_text(states[0]).has_error
            assert not source.with_text(states[-1]).has_error
            found[states[0], states[-1]] = story
    return list(found.values())


def inserted(story: Story) -> list[str]:
    """The texts of the changes, in order."""
    return [change.text for change in story.changes]
