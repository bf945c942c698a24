"""The stories of a run, and the moments of them that are asked about."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from calomel.training.branch import Example
from calomel.training.config import BatchShape, TrainConfig
from calomel.training.documents import CorpusError
from calomel.training.edit_example import EditExampleMaker
from calomel.training.edits.scenes import scene_of
from calomel.training.edits.stories import read_stories
from calomel.training.edits.story import Story

_TRIES: Final = 50


class StorySampler:
    """Draws stories: a language by its share, whether of commits, then a story, each as often as the other.

    Args:
        stories: all of them.
        shares: of the languages; empty for equal ones.
        commits: share of those that are commits', where a language has both.
    """

    def __init__(self, stories: Iterable[Story], shares: Mapping[str, float], commits: float = 0.5) -> None:
        self._stories: dict[str, tuple[list[Story], list[Story]]] = {}
        for story in stories:
            self._stories.setdefault(story.language, ([], []))[story.kind == "commit"].append(story)
        self._commits = commits
        self._languages = sorted(
            language for language in self._stories if not shares or shares.get(language, 0.0) > 0.0
        )
        if not self._languages:
            raise CorpusError(f"there is no story in any of the languages {sorted(shares)}")
        self._shares = [shares.get(language, 1.0) if shares else 1.0 for language in self._languages]

    def draw(self, rng: random.Random) -> Story:
        """A story."""
        told, committed = self._stories[rng.choices(self._languages, self._shares)[0]]
        return rng.choice(committed if not told or (committed and rng.random() < self._commits) else told)


class EditExamples:
    """Examples of edits, drawn."""

    def __init__(self, sampler: StorySampler, maker: EditExampleMaker, silent: float) -> None:
        self._sampler = sampler
        self._maker = maker
        self._silent = silent

    @classmethod
    def from_file(cls, path: Path, config: TrainConfig, maker: EditExampleMaker) -> EditExamples:
        """Of the stories in a `.jsonl.zst` made by `calomel edits`."""
        return cls(StorySampler(read_stories(path), config.languages, config.commits), maker, config.silent_scenes)

    def draw(self, shape: BatchShape, phase: float, rng: random.Random) -> Example:
        """An example of some moment of some story.

        Raises:
            CorpusError: hardly any story yields one; the shape is too small for them.
        """
        for _ in range(_TRIES):
            scene = scene_of(self._sampler.draw(rng), rng)
            if scene is None or (not scene.changes and rng.random() >= self._silent):
                continue
            example = self._maker.make(scene, shape, phase, rng)
            if example is not None:
                return example
        raise CorpusError(f"{_TRIES} stories in a row give no example of the shape {shape}")
