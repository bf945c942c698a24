"""Synthetic stories about files of the corpus, spread over languages and kinds; and counts of those kept."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from calomel.training.corpus.cleaning import MeasuringData, SeenText
from calomel.training.corpus.shards import SourceFile
from calomel.training.edits.parameters import parameter_added, parameter_removed
from calomel.training.edits.rename import rename
from calomel.training.edits.repeated import repeated_edit
from calomel.training.edits.source import Source
from calomel.training.edits.story import Story, crop

Maker = Callable[[Source, random.Random], Story | None]
# docs/decisions/016
MAKERS: Final[Mapping[str, Maker]] = {
    maker.__name__: maker for maker in (parameter_added, parameter_removed, rename, repeated_edit)
}


@dataclass(slots=True)
class Kept:
    """One split's stories. Refused ones are counted in `dropped`, by reason."""

    measuring: MeasuringData | None
    stories: list[Story] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _seen: defaultdict[str, SeenText] = field(default_factory=lambda: defaultdict(SeenText))

    def add(self, story: Story) -> bool:
        """Keep the story and return True, or count why not."""
        edited = edited_lines(story)
        seen = self._seen[story.kind]
        fault = seen.fault(edited)
        if fault is None and self.measuring is not None:
            fault = self.measuring.fault(f"{story.text}\n{edited}")
        if fault is not None:
            self.dropped[fault] += 1
            return False
        seen.add(edited)
        self.stories.append(story)
        self._counts[story.language, story.kind] += 1
        return True

    def count(self, language: str, kind: str) -> int:
        """Stories of one kind in one language."""
        return self._counts[language, kind]

    def of_language(self, language: str) -> int:
        """Stories in one language."""
        return sum(count for (of, _), count in self._counts.items() if of == language)

    def __len__(self) -> int:
        return len(self.stories)


def edited_lines(story: Story) -> str:
    """Return the lines that a story changes, each before and after: two stories are equal if these are."""
    parts = []
    for change, text in zip(story.changes, story.states(), strict=False):
        start = text.rfind("\n", 0, change.start) + 1
        end = text.find("\n", change.end)
        end = len(text) if end < 0 else end
        parts += [text[start:end], text[start : change.start] + change.text + text[change.end : end]]
    return "\n".join(parts)


def tally(stories: Sequence[Story]) -> dict[str, Any]:
    """Count one split; `changes` counts stories by their number of changes."""
    both: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for story in stories:
        both[story.kind][story.language] += 1
    return {
        "stories": len(stories),
        "by_kind": Counter(story.kind for story in stories),
        "by_language": Counter(story.language for story in stories),
        "by_kind_and_language": both,
        "changes": Counter(len(story.changes) for story in stories),
    }


# Larger files take long to read, and their uses are further apart than a story may reach.
MAX_CHARACTERS = 40_000
# Rounds over all files, each with other random draws.
ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many stories, the languages' shares of them, and how many per file and round."""

    stories: int
    shares: Mapping[str, float]
    per_file: int = 2

    def of(self, language: str) -> int:
        """Stories wanted in one language."""
        return round(self.stories * self.shares.get(language, 0.0))


def tell(
    files: Sequence[SourceFile], makers: Mapping[str, Maker], wanted: Wanted, kept: Kept, seed: int
) -> Iterator[str]:
    """Add stories about the files to `kept` until there are as many as wanted, or no more can be made.

    Yields progress lines to report. The same arguments give the same stories.
    """
    order = sorted(files, key=lambda file: (file.ecosystem, file.package, file.path))
    for turn in range(ROUNDS):
        random.Random(f"{seed}:{turn}").shuffle(order)
        for number, file in enumerate(order):
            if kept.of_language(file.language) < wanted.of(file.language):
                rng = random.Random(f"{seed}:{turn}:{file.package}:{file.path}")
                _tell_of(file, makers, kept, rng, wanted.per_file)
            if number % 2_000 == 0:
                yield f"round {turn}, file {number}: {len(kept)} stories"


def _tell_of(file: SourceFile, makers: Mapping[str, Maker], kept: Kept, rng: random.Random, most: int) -> None:
    source = Source(file.path, file.language, file.text)
    if len(file.text) > MAX_CHARACTERS or source.has_error:
        kept.dropped["too large, or does not parse"] += 1
        return
    # The rarest kinds are tried first.
    kinds = rng.sample(sorted(makers), len(makers))
    kinds.sort(key=lambda kind: kept.count(file.language, kind))
    told = 0
    for kind in kinds:
        story = makers[kind](source, rng)
        cropped = None if story is None else crop(story, rng)
        kept.dropped["too far apart"] += story is not None and cropped is None
        told += cropped is not None and kept.add(cropped)
        if told >= most:
            return
