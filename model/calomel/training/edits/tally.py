"""What a build of stories did: counted by kind and language, with why others were left out."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from calomel.training.edits.story import Story


@dataclass(frozen=True, slots=True)
class SplitTally:
    """One split's stories. `changes` counts stories by their number of changes."""

    stories: int
    characters: int
    by_kind: Mapping[str, int]
    by_language: Mapping[str, int]
    by_kind_and_language: Mapping[str, Mapping[str, int]]
    changes: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class EditsSummary:
    """A whole build. `refused` and `failed` map the key of a release or repository to the reason."""

    train: SplitTally
    heldout: SplitTally
    dropped: Mapping[str, int]
    refused: Mapping[str, str]
    failed: Mapping[str, str]
    decontaminated: bool
    warnings: tuple[str, ...]
    seed: int

    def write(self, path: Path) -> None:
        """Write the summary as indented JSON."""
        path.write_text(json.dumps(asdict(self), indent=1, sort_keys=True) + "\n", encoding="utf-8")


def tally(stories: Iterable[Story]) -> SplitTally:
    """Count one split."""
    told = list(stories)
    both: dict[str, Counter[str]] = {}
    for story in told:
        both.setdefault(story.kind, Counter())[story.language] += 1
    return SplitTally(
        stories=len(told),
        characters=sum(len(story.text) for story in told),
        by_kind=_sorted(Counter(story.kind for story in told)),
        by_language=_sorted(Counter(story.language for story in told)),
        by_kind_and_language={kind: _sorted(counts) for kind, counts in sorted(both.items())},
        changes=dict(sorted(Counter(len(story.changes) for story in told).items())),
    )


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
