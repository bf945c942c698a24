"""What a corpus build did: counted by language, source and reason, and written as JSON."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from tokenizers import Tokenizer

from calomel.training.corpus.shards import SourceFile
from calomel.weights import nano_path

# Files that are turned into tokens at once.
_BATCH = 256


@dataclass(frozen=True, slots=True)
class Tally:
    """A number of files, their size in bytes of UTF-8, and in tokens of the shipped tokenizer."""

    files: int = 0
    bytes: int = 0
    tokens: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.files + other.files, self.bytes + other.bytes, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class SplitSummary:
    """One split of the corpus: training or held out."""

    total: Tally
    by_language: Mapping[str, Tally]
    by_source: Mapping[str, Tally]


@dataclass(frozen=True, slots=True)
class CorpusSummary:
    """A whole build. `refused` and `failed` map a source's key to the reason."""

    train: SplitSummary
    heldout: SplitSummary
    dropped: Mapping[str, int]
    refused: Mapping[str, str]
    failed: Mapping[str, str]
    decontaminated: bool
    warnings: tuple[str, ...]
    seed: int

    def write(self, path: Path) -> None:
        """Write the summary as indented JSON."""
        path.write_text(json.dumps(asdict(self), indent=1, sort_keys=True) + "\n", encoding="utf-8")

    def lines(self) -> Iterator[str]:
        """Yield it as lines for a terminal: by source, the largest first, by language, and what was dropped."""
        yield f"{'files':>9} {'bytes':>13} {'tokens':>13}"
        by_bytes = sorted(self.train.by_source.items(), key=lambda item: -item[1].bytes)
        rows = [*by_bytes, *self.train.by_language.items(), ("training", self.train.total)]
        for name, tally in (*rows, ("held out", self.heldout.total)):
            yield f"{tally.files:>9,} {tally.bytes:>13,} {tally.tokens:>13,}  {name}"
        for reason, count in sorted(self.dropped.items(), key=lambda item: -item[1]):
            yield f"{count:>9,} files dropped: {reason}"
        yield f"{len(self.refused)} sources refused, {len(self.failed)} failed"


def summarise(files: Iterable[SourceFile]) -> SplitSummary:
    """Count one split."""
    tokenizer = Tokenizer.from_file(str(nano_path() / "tokenizer.json"))
    languages: defaultdict[str, Tally] = defaultdict(Tally)
    sources: defaultdict[str, Tally] = defaultdict(Tally)
    rest = iter(files)
    while batch := tuple(islice(rest, _BATCH)):
        encoded = tokenizer.encode_batch_fast([file.text for file in batch], add_special_tokens=False)
        for file, tokens in zip(batch, encoded, strict=True):
            tally = Tally(1, len(file.text.encode()), len(tokens))
            languages[file.language] += tally
            sources[f"{file.ecosystem}/{file.package}"] += tally
    return SplitSummary(
        sum(languages.values(), Tally()),
        by_language=dict(sorted(languages.items())),
        by_source=dict(sorted(sources.items())),
    )
