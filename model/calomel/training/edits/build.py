"""Builds the stories: real edits between releases and in commits, and those that makers tell about the corpus.

Held-out packages come first, so that whatever a training package shares with them is dropped from training.
"""

import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from calomel.storage import write_whole
from calomel.training.corpus import build as corpus_build
from calomel.training.corpus.build import Record, credit_package, credit_repository, extract
from calomel.training.corpus.cleaning import SeenText
from calomel.training.corpus.packages import (
    DEFAULT_CACHE,
    DEFAULT_LIST,
    DEFAULT_LOCK,
    ArchiveCache,
    Package,
)
from calomel.training.corpus.repositories import (
    DEFAULT_REPOSITORIES,
    Repository,
    RepositoryCache,
    folder_licenses,
    is_license,
    load_repositories,
    read_repository,
)
from calomel.training.corpus.shards import CorpusError, SourceFile, Summary, read_shard
from calomel.training.edits.histories import (
    COMMIT,
    DEFAULT_RELEASES,
    DEFAULT_RELEASES_LOCK,
    RELEASE,
    FileChange,
    Teller,
    paired,
    paired_files,
    stories_between,
)
from calomel.training.edits.makers import MAKERS, Maker
from calomel.training.edits.source import LANGUAGES, Source
from calomel.training.edits.story import crop, write_stories
from calomel.training.edits.synthetic import Kept, Wanted, tally, tell

_log = logging.getLogger(__name__)

TRAIN = "train-edits.jsonl.zst"
HELDOUT = "heldout-edits.jsonl.zst"
SUMMARY = "summary.json"
NOTICE = "NOTICE"
# The held-out packages alone: travels with copies of the held-out stories.
HELDOUT_NOTICE = "NOTICE.heldout"

# What people write most in is trained most.
TRAIN_SHARES = {"python": 0.5, "typescript": 0.15, "javascript": 0.12, "go": 0.11, "rust": 0.12}
# Measured evenly enough for a figure in each language.
HELDOUT_SHARES = {"python": 0.3, "typescript": 0.15, "javascript": 0.15, "go": 0.2, "rust": 0.2}
# A held-out file is asked for more stories than a training file: there are few of them.
HELDOUT_PER_FILE = 4


@dataclass(frozen=True, slots=True)
class EditsConfig:
    """Everything a build depends on; the same config gives the same bytes."""

    # A folder that `build_corpus` has written.
    corpus: Path
    out: Path
    cache: Path = DEFAULT_CACHE
    packages: Path = DEFAULT_LIST
    lock: Path = DEFAULT_LOCK
    releases: Path = DEFAULT_RELEASES
    releases_lock: Path = DEFAULT_RELEASES_LOCK
    repositories: Path = DEFAULT_REPOSITORIES
    data: Path = field(default_factory=corpus_build.default_data_folder)
    seed: int = 0
    stories: int = 25_000
    heldout_stories: int = 300
    # Training stories of commits, beside the others.
    commits: int = 140_000
    # Stories of one package's two releases, so that none sets the style of the whole.
    package_stories: int = 300
    heldout_package_stories: int = 15
    # Share of a language's stories of commits that one repository may give.
    repository_share: float = 0.05
    # Share of a training file's telling lines that held-out text may know.
    heldout_share: float = 0.3


def build_edits(
    config: EditsConfig, report: Callable[[str], None] = _log.info, makers: Mapping[str, Maker] = MAKERS
) -> Summary:
    """Build the stories under `config.out` and return what was done.

    A release or repository that cannot be fetched, read or used is left out and named in the summary. `report` is told
    a line for each and now and then. Raises CorpusError when `config.corpus` is no corpus or a list is wrong.
    """
    missing = [name for name in _corpus_files() if not (config.corpus / name).exists()]
    if missing:
        raise CorpusError(f"{config.corpus} holds no {', '.join(missing)}: `calomel corpus` writes a corpus")
    build = _Build(config, report, makers)
    build.read_releases()
    build.tell()
    build.read_histories()
    return build.write()


def _corpus_files() -> tuple[str, ...]:
    return corpus_build.TRAIN, corpus_build.HELDOUT, corpus_build.NOTICE, corpus_build.HELDOUT_NOTICE


class _Build:
    """The state of one build."""

    def __init__(self, config: EditsConfig, report: Callable[[str], None], makers: Mapping[str, Maker]) -> None:
        self._config = config
        self._makers = makers
        self._record = Record(config.data, config.seed, "stories are", report)
        self._dropped = self._record.summary.dropped
        self._train = Kept(self._record.measuring)
        self._heldout = Kept(self._record.measuring)
        self._heldout_files = self._read(corpus_build.HELDOUT)
        self._heldout_seen = SeenText(config.heldout_share)
        for file in self._heldout_files:
            self._heldout_seen.add(file.text)

    def _read(self, shard: str) -> list[SourceFile]:
        return [file for file in read_shard(self._config.corpus / shard) if file.language in LANGUAGES]

    def read_releases(self) -> None:
        """Add the stories of all pairs of releases, the held-out ones first."""
        config = self._config
        earlier = ArchiveCache(config.cache, config.releases_lock)
        later = ArchiveCache(config.cache, config.lock)
        for packages in paired(config.packages, config.releases):
            self._record.attempt(packages[0].key, partial(self._read_pair, packages, earlier, later))

    def _read_pair(self, pair: tuple[Package, Package], earlier: ArchiveCache, later: ArchiveCache) -> None:
        config, (older, newer) = self._config, pair
        archives = earlier.fetch(older), later.fetch(newer)
        files = [extract(archive, config.seed).files for archive in archives]
        kept, most = self._train, config.package_stories
        if newer.held_out:
            kept, most = self._heldout, config.heldout_package_stories
            for file in (*files[0], *files[1]):
                self._heldout_seen.add(file.text)
        before = len(kept)
        licenses: set[str] = set()
        versions = list(paired_files(*files))
        random.Random(f"{config.seed}:{newer.key}").shuffle(versions)
        for old, new in versions:
            if len(kept) - before >= most:
                self._dropped["release: over cap of package"] += 1
            elif self._add_file(old, new, kept, held_out=newer.held_out):
                licenses.update((old.license, new.license))
        if licenses:
            expression = " AND ".join(sorted(licenses))
            self._record.credits += [credit_package(archive, expression) for archive in archives]
        self._record.report(f"{len(kept) - before:>5} stories  {older.key}")

    def _add_file(self, older: SourceFile, newer: SourceFile, kept: Kept, *, held_out: bool) -> int:
        """Keep the stories of a file; returns how many."""
        if fault := self._file_fault((older.text, newer.text), held_out=held_out):
            self._dropped[f"release: {fault}"] += 1
            return 0
        before, after = (Source(file.path, file.language, file.text) for file in (older, newer))
        told = 0
        for story in stories_between(before, after, RELEASE, self._dropped):
            cropped = crop(story, random.Random(f"{self._config.seed}:{story.path}"))
            self._dropped["release: too far apart"] += cropped is None
            told += cropped is not None and kept.add(cropped)
        return told

    def _file_fault(self, texts: tuple[str, ...], *, held_out: bool) -> str | None:
        for text in texts:
            if self._record.measuring and (fault := self._record.measuring.fault(text)):
                return fault
            if not held_out and self._heldout_seen.fault(text):
                return "held-out duplicate"
        return None

    def tell(self) -> None:
        """Let the makers add what the releases did not give."""
        config = self._config
        heldout = Wanted(config.heldout_stories, HELDOUT_SHARES, HELDOUT_PER_FILE)
        for line in tell(self._heldout_files, self._makers, heldout, self._heldout, config.seed):
            self._record.report(f"held out, {line}")
        wanted = Wanted(config.stories, TRAIN_SHARES)
        for line in tell(self._read(corpus_build.TRAIN), self._makers, wanted, self._train, config.seed):
            self._record.report(f"training, {line}")

    def read_histories(self) -> None:
        """Add the stories of commits: beside the others, of which there are as many without them."""
        cache = RepositoryCache(self._config.cache)
        for repository in load_repositories(self._config.repositories) if self._config.commits else ():
            before = len(self._train)
            self._record.attempt(repository.key, partial(self._add_history, repository, cache))
            self._record.report(f"{len(self._train) - before:>5} stories  {repository.key}")

    def _add_history(self, repository: Repository, cache: RepositoryCache) -> None:
        config, clone = self._config, cache.fetch(repository)
        licenses = folder_licenses(repository, read_repository(clone, repository.commit, is_license))
        wanted = Wanted(config.commits, TRAIN_SHARES)
        told: Counter[str] = Counter()
        used: set[str] = set()

        def is_wanted(change: FileChange) -> bool:
            most = wanted.of(change.language)
            fault: str | None = None
            if told[change.language] >= config.repository_share * most:
                fault = "over share of repository"
            elif self._train.count(change.language, COMMIT) >= most:
                fault = "language has enough"
            elif licenses.license_of(change.path) is None:
                fault = "license"
            self._dropped[f"{COMMIT}: {fault}"] += bool(fault)
            return fault is None

        teller = Teller(clone, lambda text: self._file_fault((text,), held_out=False), self._dropped, config.seed)
        for story in filter(self._train.add, teller.stories(repository.commit, is_wanted)):
            told[story.language] += 1
            used.add(licenses.license_of(story.path) or "")
        if used:
            self._record.credits.append(credit_repository(repository, " AND ".join(sorted(used))))

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
        own = (corpus_build.NOTICE, corpus_build.HELDOUT_NOTICE)
        for name, of_corpus, notice in zip((NOTICE, HELDOUT_NOTICE), own, self._record.notices(), strict=True):
            # The corpus's own, and behind it the releases and histories whose differences became stories.
            said = (config.corpus / of_corpus).read_text(encoding="utf-8")
            write_whole(config.out / name, f"{said}\nReleases compared, and commits up to the ones named\n\n{notice}")
        summary.write(config.out / SUMMARY)
        return summary
