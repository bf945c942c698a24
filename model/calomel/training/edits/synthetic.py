"""Stories that makers tell about files of the corpus, spread over languages and kinds."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from calomel.training.corpus.shards import SourceFile
from calomel.training.edits.kept import Kept
from calomel.training.edits.makers import Maker
from calomel.training.edits.source import Source
from calomel.training.edits.stories import CROP_CHARACTERS, crop
from calomel.training.edits.windows import window

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
