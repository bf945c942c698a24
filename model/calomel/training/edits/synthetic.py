"""Stories that makers tell about files of the corpus, spread over languages and kinds; and those kept, counted."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calomel.training.corpus.cleaning import MeasuringData, SeenText
from calomel.training.corpus.shards import SourceFile
from calomel.training.edits.makers import Maker
from calomel.training.edits.source import Source, window
from calomel.training.edits.story import CROP_CHARACTERS, Story, crop


@dataclass(slots=True)
class Kept:
    """One split's stories. What is refused is counted in `dropped`, by reason."""

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

    def __iter__(self) -> Iterator[Story]:
        return iter(self.stories)


def edited_lines(story: Story) -> str:
    """Return the lines that a story changes, each before and after: what makes two stories the same."""
    parts = []
    for change, text in zip(story.changes, story.states(), strict=False):
        start = text.rfind("\n", 0, change.start) + 1
        end = text.find("\n", change.end)
        end = len(text) if end < 0 else end
        parts += [text[start:end], text[start : change.start] + change.text + text[change.end : end]]
    return "\n".join(parts)


def tally(stories: Iterable[Story]) -> dict[str, Any]:
    """Count one split; `changes` counts stories by their number of changes."""
    told = list(stories)
    both: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for story in told:
        both[story.kind][story.language] += 1
    return {
        "stories": len(told),
        "characters": sum(len(story.text) for story in told),
        "by_kind": Counter(story.kind for story in told),
        "by_language": Counter(story.language for story in told),
        "by_kind_and_language": both,
        "changes": Counter(len(story.changes) for story in told),
    }


# Stories of one file in one round, and makers asked for them. Whoever finds nothing costs time alone.
PER_FILE = 2
ATTEMPTS = 6
# Rounds over all files, each with other windows and other draws.
ROUNDS = 6
# No kind gets more than this many times its even part of a language's stories; a thorough search holds all kinds to
# their part until its last rounds, so that the seldom ones find their places.
MAX_OF_KIND = 2.0
LAST_ROUNDS = 2
# Tries of a kind before its yield is believed.
PATIENCE = 40


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many stories, and the languages' shares of them."""

    stories: int
    shares: Mapping[str, float]
    per_file: int = PER_FILE
    # Ask every maker about every file, however seldom it answers: for few files, of which all kinds are wanted.
    thorough: bool = False

    def of(self, language: str) -> int:
        """Stories wanted in one language."""
        return round(self.stories * self.shares.get(language, 0.0))


class _Balance:
    """Which kinds are behind in a language, and which of them are worth asking."""

    def __init__(self, wanted: Wanted, kinds: Sequence[str], kept: Kept) -> None:
        self._wanted = wanted
        self._kinds = kinds
        self._kept = kept
        self._asked: Counter[tuple[str, str]] = Counter()
        self.turn = 0

    def full(self, language: str) -> bool:
        return self._kept.of_language(language) >= self._wanted.of(language)

    def order(self, language: str, rng: random.Random) -> list[str]:
        """Return the kinds to ask one after another, drawn; those that are behind or often answer come early."""
        weights = {kind: self._weight(language, kind) for kind in self._kinds}
        drawn = {kind: rng.random() ** (1 / weight) for kind, weight in weights.items() if weight > 0}
        turns = sorted(drawn, key=lambda kind: drawn[kind], reverse=True)
        return turns if self._wanted.thorough else turns[:ATTEMPTS]

    def asked(self, language: str, kind: str) -> None:
        self._asked[language, kind] += 1

    def _weight(self, language: str, kind: str) -> float:
        even = self._wanted.of(language) / len(self._kinds)
        most = even if self._wanted.thorough and self.turn < ROUNDS - LAST_ROUNDS else MAX_OF_KIND * even
        found = self._kept.count(language, kind)
        if found >= most:
            return 0.0
        asked = self._asked[language, kind]
        believed = asked > PATIENCE and not self._wanted.thorough
        yielding = (found + 1) / (asked + 1) if believed else 1.0
        return (1.0 - found / most) * max(0.02, min(1.0, 4 * yielding))


def tell(
    files: Sequence[SourceFile], makers: Mapping[str, Maker], wanted: Wanted, kept: Kept, seed: int
) -> Iterator[str]:
    """Add stories about the files to `kept` until there are as many as wanted, or none are to be had.

    Yields a line to report now and then. The same arguments give the same stories.
    """
    balance = _Balance(wanted, sorted(makers), kept)
    order = sorted(files, key=lambda file: (file.ecosystem, file.package, file.path))
    for turn in range(ROUNDS):
        balance.turn = turn
        random.Random(f"{seed}:{turn}").shuffle(order)
        for number, file in enumerate(order):
            if not balance.full(file.language):
                rng = random.Random(f"{seed}:{turn}:{file.package}:{file.path}")
                _tell_of(file, makers, balance, kept, rng, wanted.per_file)
            if number % 2_000 == 0:
                yield f"round {turn}, file {number}: {len(kept)} stories"
        if all(map(balance.full, wanted.shares)):
            return


def _tell_of(
    file: SourceFile, makers: Mapping[str, Maker], balance: _Balance, kept: Kept, rng: random.Random, most: int
) -> None:
    source = window(Source(file.path, file.language, file.text), rng, CROP_CHARACTERS)
    if source.has_error:
        kept.dropped["does not parse"] += 1
        return
    told = 0
    for kind in balance.order(file.language, rng):
        balance.asked(file.language, kind)
        story = makers[kind](source, rng)
        if story is None:
            continue
        cropped = crop(story, rng)
        if cropped is None:
            kept.dropped["too far apart"] += 1
        elif kept.add(cropped):
            told += 1
        if told >= most:
            return
