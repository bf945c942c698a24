"""Builds the stories out of the commits of repositories.

Held-out repositories come first, so that whatever a training file shares with them is dropped from training.
"""

import logging
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from calomel.storage import write_whole
from calomel.training.corpus import build as corpus_build
from calomel.training.corpus.build import HELDOUT_NOTICE, NOTICE, SUMMARY, Record, credit_repository
from calomel.training.corpus.cleaning import MeasuringData, SeenText
from calomel.training.corpus.licenses import folder_licenses, is_license
from calomel.training.corpus.repositories import (
    DEFAULT_CACHE,
    DEFAULT_REPOSITORIES,
    Repository,
    fetch_clone,
    load_repositories,
    read_repository,
)
from calomel.training.corpus.shards import CorpusError, Summary, read_lines
from calomel.training.edits.histories import COMMIT, FileChange, Teller
from calomel.training.edits.story import Story, write_stories

_log = logging.getLogger(__name__)

TRAIN = "train-edits.jsonl.zst"
HELDOUT = "heldout-edits.jsonl.zst"

# What people write most in is trained most.
TRAIN_SHARES = {"python": 0.5, "typescript": 0.15, "javascript": 0.12, "go": 0.11, "rust": 0.12}
# Measured evenly enough for a figure in each language.
HELDOUT_SHARES = {"python": 0.3, "typescript": 0.15, "javascript": 0.15, "go": 0.2, "rust": 0.2}
# Share of a language's stories that one held-out repository may give: there are two for each language.
HELDOUT_REPOSITORY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class EditsConfig:
    """Everything a build depends on; the same config gives the same bytes."""

    # A folder that `build_corpus` has written.
    corpus: Path
    out: Path
    cache: Path = DEFAULT_CACHE
    repositories: Path = DEFAULT_REPOSITORIES
    data: Path = field(default_factory=corpus_build.default_data_folder)
    seed: int = 0
    stories: int = 140_000
    heldout_stories: int = 80
    # Share of a language's stories that one repository may give.
    repository_share: float = 0.05
    # Share of a training file's telling lines that held-out text may know.
    heldout_share: float = 0.3


def build_edits(config: EditsConfig, report: Callable[[str], None] = _log.info) -> Summary:
    """Build the stories under `config.out` and return what was done.

    A repository that cannot be fetched, read or used is left out and named in the summary. `report` is told a line for
    each. Raises CorpusError when `config.corpus` is no corpus or the list is wrong.
    """
    if not (config.corpus / corpus_build.HELDOUT).exists():
        raise CorpusError(f"{config.corpus} holds no {corpus_build.HELDOUT}: `calomel corpus` writes a corpus")
    build = _Build(config, report)
    for repository in load_repositories(config.repositories):
        build.read_history(repository)
    return build.write()


class _Kept:
    """One split's stories, what was refused of them in `dropped`, by reason, and how many there are of a language."""

    def __init__(self, measuring: MeasuringData | None) -> None:
        self.stories: list[Story] = []
        self.dropped: Counter[str] = Counter()
        self.of_language: Counter[str] = Counter()
        self._measuring = measuring
        self._seen = SeenText()

    def add(self, story: Story) -> bool:
        """Keep the story and return True, or count why not."""
        edited = edited_lines(story)
        fault = self._seen.fault(edited)
        if fault is None and self._measuring is not None:
            fault = self._measuring.fault(f"{story.text}\n{edited}")
        if fault is not None:
            self.dropped[fault] += 1
            return False
        self._seen.add(edited)
        self.stories.append(story)
        self.of_language[story.language] += 1
        return True


def edited_lines(story: Story) -> str:
    """Return the lines that a story changes, each before and after: what makes two stories the same."""
    parts = []
    for change, text in zip(story.changes, story.states(), strict=False):
        start = text.rfind("\n", 0, change.start) + 1
        end = text.find("\n", change.end)
        end = len(text) if end < 0 else end
        parts += [text[start:end], text[start : change.start] + change.text + text[change.end : end]]
    return "\n".join(parts)


def tally(stories: Sequence[Story]) -> dict[str, Any]:
    """Count one split; `changes` counts stories by their number of changes."""
    return {
        "stories": len(stories),
        "by_language": Counter(story.language for story in stories),
        "changes": Counter(len(story.changes) for story in stories),
    }


class _Build:
    """The state of one build."""

    def __init__(self, config: EditsConfig, report: Callable[[str], None]) -> None:
        self._config = config
        self._record = Record(config.data, config.seed, "stories are", report)
        self._dropped = self._record.summary.dropped
        self._train = _Kept(self._record.measuring)
        self._heldout = _Kept(self._record.measuring)
        self._heldout_seen = SeenText(config.heldout_share)
        for file in read_lines(config.corpus / corpus_build.HELDOUT, "calomel corpus"):
            self._heldout_seen.add(file["text"])

    def read_history(self, repository: Repository) -> None:
        """Add the stories of a repository's commits; note why when it cannot be used."""
        kept = self._heldout if repository.held_out else self._train
        before = len(kept.stories)
        self._record.attempt(repository.key, partial(self._add_history, repository, kept))
        self._record.report(f"{len(kept.stories) - before:>5} stories  {repository.key}")

    def _add_history(self, repository: Repository, kept: _Kept) -> None:
        config, clone = self._config, fetch_clone(self._config.cache, repository)
        license_of = folder_licenses(repository.license, read_repository(clone, repository.commit, is_license))
        wanted, shares, share = config.stories, TRAIN_SHARES, config.repository_share
        if repository.held_out:
            wanted, shares, share = config.heldout_stories, HELDOUT_SHARES, HELDOUT_REPOSITORY_SHARE
        told: Counter[str] = Counter()
        used: set[str] = set()

        def is_wanted(change: FileChange) -> bool:
            most = round(wanted * shares[change.language])
            fault: str | None = None
            if told[change.language] >= share * most:
                fault = "over share of repository"
            elif kept.of_language[change.language] >= most:
                fault = "language has enough"
            elif license_of(change.path) is None:
                fault = "license"
            self._dropped[f"{COMMIT}: {fault}"] += bool(fault)
            return fault is None

        fault = partial(self._text_fault, held_out=repository.held_out)
        for story in filter(
            kept.add, Teller(clone, fault, self._dropped, config.seed).stories(repository.commit, is_wanted)
        ):
            told[story.language] += 1
            used.add(license_of(story.path) or "")
            if repository.held_out:
                self._heldout_seen.add(story.text)
        if used:
            self._record.credits.append(credit_repository(repository, " AND ".join(sorted(used))))

    def _text_fault(self, text: str, *, held_out: bool) -> str | None:
        if self._record.measuring and (fault := self._record.measuring.fault(text)):
            return fault
        return "held-out duplicate" if not held_out and self._heldout_seen.fault(text) else None

    def write(self) -> Summary:
        """Shuffle and write both splits, the notices and, last, the summary."""
        config = self._config
        config.out.mkdir(parents=True, exist_ok=True)
        for kept in (self._train, self._heldout):
            self._dropped.update(kept.dropped)
            # Order decides batches, not secrets: a seeded generator is what is wanted.
            random.Random(config.seed).shuffle(kept.stories)
        summary = self._record.summary
        summary.train, summary.heldout = tally(self._train.stories), tally(self._heldout.stories)
        write_stories(config.out / TRAIN, self._train.stories)
        write_stories(config.out / HELDOUT, self._heldout.stories)
        for name, notice in zip((NOTICE, HELDOUT_NOTICE), self._record.notices(), strict=True):
            write_whole(config.out / name, f"Commits, up to the ones named\n\n{notice}")
        summary.write(config.out / SUMMARY)
        return summary
