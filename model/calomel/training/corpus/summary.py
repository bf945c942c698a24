"""What a corpus build did: counted by language, package and reason, and written as JSON."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from calomel.training.corpus.shards import SourceFile


@dataclass(frozen=True, slots=True)
class Tally:
    """A number of files and their size in bytes of UTF-8."""

    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class SplitSummary:
    """One split of the corpus: training or held out."""

    total: Tally
    by_language: Mapping[str, Tally]
    by_package: Mapping[str, Tally]


@dataclass(frozen=True, slots=True)
class CorpusSummary:
    """A whole build. `refused` and `failed` map a package's key to the reason."""

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


def summarise(files: Iterable[SourceFile]) -> SplitSummary:
    """Count one split."""
    counts: dict[str, Counter[str]] = {"language": Counter(), "package": Counter()}
    sizes: dict[str, Counter[str]] = {"language": Counter(), "package": Counter()}
    for file in files:
        size = len(file.text.encode())
        package = f"{file.ecosystem}/{file.package}"
        for kind, key in (("language", file.language), ("package", package)):
            counts[kind][key] += 1
            sizes[kind][key] += size
    total = Tally(counts["language"].total(), sizes["language"].total())
    return SplitSummary(
        total,
        by_language=_tallies(counts["language"], sizes["language"]),
        by_package=_tallies(counts["package"], sizes["package"]),
    )


def _tallies(counts: Counter[str], sizes: Counter[str]) -> dict[str, Tally]:
    return {key: Tally(counts[key], sizes[key]) for key in sorted(counts)}
