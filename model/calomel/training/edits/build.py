"""Builds the stories from the commits of repositories.

Held-out repositories come first, so that training files that share something with them are dropped.
"""

import logging
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from calomel.storage import write_whole
from calomel.training.corpus import build as corpus_build
from calomel.training.corpus.build import HELDOUT_NOTICE, NOTICE, SUMMARY, Record, credit_repository
from calomel.training.corpus.cleaning import MeasuringData, SeenText
from calomel.training.corpus.licenses import folder_licenses, is_license
from calomel.training.corpus.packages import DEFAULT_CACHE
from calomel.training.corpus.repositories import (
    DEFAULT_REPOSITORIES,
    Repository,
    fetch_clone,
    load_repositories,
    read_repository,
)
from calomel.training.corpus.shards import CorpusError, Summary, read_shard
from calomel.training.edits.histories import FileChange, Teller
from calomel.training.edits.story import COMMIT, LANGUAGES, Story, write_stories

_log = logging.getLogger(__name__)

TRAIN = "train-edits.jsonl.zst"
HELDOUT = "heldout-edits.jsonl.zst"

# The languages that people write most are trained most.
TRAIN_SHARES = {"python": 0.5, "typescript": 0.15, "javascript": 0.12, "go": 0.11, "rust": 0.12}
# Balanced enough to measure every language.
HELDOUT_SHARES = {"python": 0.3, "typescript": 0.15, "javascript": 0.15, "go": 0.2, "rust": 0.2}
# Share of a language's commit stories that one held-out repository may give: there are two per language.
HELDOUT_REPOSITORY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class EditsConfig:
    """Everything a build depends on; the same config gives the same bytes."""

    # A folder written by `build_corpus`.
    corpus: Path
    out: Path
    cache: Path = DEFAULT_CACHE
    repositories: Path = DEFAULT_REPOSITORIES
    data: Path = field(default_factory=corpus_build.default_data_folder)
    seed: int = 0
    stories: int = 140_000
    heldout_stories: int = 80
    # Share of a language's commit stories that one repository may give.
    repository_share: float = 0.05
    # Share of a training file's distinctive lines that held-out text may contain.
    heldout_share: float = 0.3


def build_edits(config: EditsConfig, report: Callable[[str], None] = _log.info) -> Summary:
    """Build the stories under `config.out` and return what was done.

    A repository that cannot be fetched, read or used is left out and named in the summary. `report` gets a line for
    each, and progress lines. Raises CorpusError if `config.corpus` is not a corpus or the list is wrong.
    """
    files = corpus_build.TRAIN, corpus_build.HELDOUT, NOTICE, HELDOUT_NOTICE
    if missing := [name for name in files if not (config.corpus / name).exists()]:
        raise CorpusError(f"{config.corpus} holds no {', '.join(missing)}: `calomel corpus` writes a corpus")
    build = _Build(config, report)
    build.read_histories(sorted(load_repositories(config.repositories), key=lambda each: not each.held_out))
    return build.write()


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


class _Build:
    """The state of one build."""

    def __init__(self, config: EditsConfig, report: Callable[[str], None]) -> None:
        self._config = config
        self._record = Record(config.data, config.seed, "stories are", report)
        self._dropped = self._record.summary.dropped
        self._train = Kept(self._record.measuring)
        self._heldout = Kept(self._record.measuring)
        self._heldout_seen = SeenText(config.heldout_share)
        for file in read_shard(config.corpus / corpus_build.HELDOUT):
            if file.language in LANGUAGES:
                self._heldout_seen.add(file.text)

    def read_histories(self, repositories: Iterable[Repository]) -> None:
        """Add the stories of commits."""
        for repository in repositories:
            kept = self._heldout if repository.held_out else self._train
            before = len(kept)
            self._record.attempt(repository.key, partial(self._add_history, repository, kept))
            self._record.report(f"{len(kept) - before:>5} stories  {repository.key}")

    def _add_history(self, repository: Repository, kept: Kept) -> None:
        config, clone = self._config, fetch_clone(self._config.cache, repository)
        license_of = folder_licenses(repository.license, read_repository(clone, repository.commit, is_license))
        wanted, shares, share = config.stories, TRAIN_SHARES, config.repository_share
        if repository.held_out:
            wanted, shares, share = config.heldout_stories, HELDOUT_SHARES, HELDOUT_REPOSITORY_SHARE
        told: Counter[str] = Counter()
        used: set[str] = set()

        def is_wanted(change: FileChange) -> bool:
            most = round(wanted * shares.get(change.language, 0.0))
            fault: str | None = None
            if told[change.language] >= share * most:
                fault = "over share of repository"
            elif kept.count(change.language, COMMIT) >= most:
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
            # The order only affects batches, not secrets: a seeded generator is intended.
            random.Random(config.seed).shuffle(kept.stories)
        summary = self._record.summary
        summary.train, summary.heldout = tally(self._train.stories), tally(self._heldout.stories)
        write_stories(config.out / TRAIN, self._train.stories)
        write_stories(config.out / HELDOUT, self._heldout.stories)
        for name, notice in zip((NOTICE, HELDOUT_NOTICE), self._record.notices(), strict=True):
            # The corpus's own, followed by the histories whose differences became stories.
            said = (config.corpus / name).read_text(encoding="utf-8")
            write_whole(config.out / name, f"{said}\nCommits, up to the ones named\n\n{notice}")
        summary.write(config.out / SUMMARY)
        return summary
