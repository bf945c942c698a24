"""Builds the stories: real edits between releases and in commits, and those that makers tell about the corpus.

Held-out packages come first, so that whatever a training package shares with them is dropped from training.
"""

import logging
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from calomel.training.corpus import build as corpus_build
from calomel.training.corpus.contamination import MeasuringData, read_measuring_data
from calomel.training.corpus.duplicates import SeenText
from calomel.training.corpus.errors import ArchiveError, CorpusError, FetchError, LicenseError
from calomel.training.corpus.fetch import DEFAULT_CACHE, DEFAULT_LOCK, ArchiveCache
from calomel.training.corpus.notice import Credit, RepositoryCredit, render_notice
from calomel.training.corpus.packages import DEFAULT_LIST
from calomel.training.corpus.repositories import (
    DEFAULT_REPOSITORIES,
    Repository,
    RepositoryCache,
    folder_licenses,
    is_license,
    load_repositories,
    read_repository,
)
from calomel.training.corpus.shards import SourceFile, read_shard
from calomel.training.edits.earlier import (
    DEFAULT_RELEASES,
    DEFAULT_RELEASES_LOCK,
    ReleasePair,
    fetch_pair,
    paired,
)
from calomel.training.edits.histories import KIND as COMMIT
from calomel.training.edits.histories import FileChange, Teller
from calomel.training.edits.kept import Kept
from calomel.training.edits.makers import MAKERS, Maker
from calomel.training.edits.releases import release_stories
from calomel.training.edits.source import LANGUAGES, Source
from calomel.training.edits.stories import crop, write_stories
from calomel.training.edits.synthetic import Wanted, tell
from calomel.training.edits.tally import EditsSummary, tally

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
) -> EditsSummary:
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
        self._report = report
        self._makers = makers
        self._warnings: list[str] = []
        measuring = self._read_measuring()
        self._train = Kept(measuring)
        self._heldout = Kept(measuring)
        self._dropped: Counter[str] = Counter()
        self._refused: dict[str, str] = {}
        self._failed: dict[str, str] = {}
        self._credits: list[Credit] = []
        self._histories: list[RepositoryCredit] = []
        self._heldout_files = self._read(corpus_build.HELDOUT)
        self._heldout_seen = SeenText(config.heldout_share)
        for file in self._heldout_files:
            self._heldout_seen.add(file.text)

    def _read(self, shard: str) -> list[SourceFile]:
        return [file for file in read_shard(self._config.corpus / shard) if file.language in LANGUAGES]

    def _read_measuring(self) -> MeasuringData | None:
        measuring = read_measuring_data(self._config.data)
        if measuring is None:
            warning = f"no measuring data at {self._config.data}: stories are NOT DECONTAMINATED; set CALOMEL_DATA"
            _log.warning(warning)
            self._report(f"WARNING {warning}")
            self._warnings.append(warning)
        return measuring

    def read_releases(self) -> None:
        """Add the stories of all pairs of releases, the held-out ones first."""
        config = self._config
        earlier = ArchiveCache(config.cache, config.releases_lock)
        later = ArchiveCache(config.cache, config.lock)
        for older, newer in paired(config.packages, config.releases):
            try:
                pair = fetch_pair(older, newer, earlier, later, config.seed)
            except (FetchError, ArchiveError) as error:
                self._failed[older.key] = str(error)
                self._report(f"FAILED  {older.key}: {error}")
            except LicenseError as error:
                self._refused[older.key] = str(error)
                self._report(f"REFUSED {older.key}: {error}")
            else:
                self._add_pair(pair)

    def _add_pair(self, pair: ReleasePair) -> None:
        kept = self._heldout if pair.package.held_out else self._train
        most = self._config.package_stories
        if pair.package.held_out:
            most = self._config.heldout_package_stories
            for release in (pair.older, pair.newer):
                for file in release.extraction.files:
                    self._heldout_seen.add(file.text)
        before = len(kept)
        licenses: set[str] = set()
        for older, newer in self._shuffled(pair):
            if len(kept) - before >= most:
                self._dropped["release: over cap of package"] += 1
                continue
            if sum(self._add_file(older, newer, kept, held_out=pair.package.held_out)):
                licenses.update((older.license, newer.license))
        if licenses:
            expression = " AND ".join(sorted(licenses))
            self._credits += [Credit(release.archive, expression) for release in (pair.older, pair.newer)]
        self._report(f"{len(kept) - before:>5} stories  {pair.older.archive.package.key}")

    def _shuffled(self, pair: ReleasePair) -> list[tuple[SourceFile, SourceFile]]:
        files = list(pair.files())
        random.Random(f"{self._config.seed}:{pair.package.key}").shuffle(files)
        return files

    def _add_file(self, older: SourceFile, newer: SourceFile, kept: Kept, *, held_out: bool) -> Iterator[bool]:
        if fault := self._file_fault((older.text, newer.text), held_out=held_out):
            self._dropped[f"release: {fault}"] += 1
            return
        before, after = (Source(file.path, file.language, file.text) for file in (older, newer))
        for story in release_stories(before, after, self._dropped):
            cropped = crop(story, random.Random(f"{self._config.seed}:{story.path}"))
            if cropped is None:
                self._dropped["release: too far apart"] += 1
            else:
                yield kept.add(cropped)

    def _file_fault(self, texts: tuple[str, ...], *, held_out: bool) -> str | None:
        for text in texts:
            if self._train.measuring and (fault := self._train.measuring.fault(text)):
                return fault
            if not held_out and self._heldout_seen.fault(text):
                return "held-out duplicate"
        return None

    def tell(self) -> None:
        """Let the makers add what the releases did not give."""
        config = self._config
        heldout = Wanted(config.heldout_stories, HELDOUT_SHARES, HELDOUT_PER_FILE, thorough=True)
        for line in tell(self._heldout_files, self._makers, heldout, self._heldout, config.seed):
            self._report(f"held out, {line}")
        wanted = Wanted(config.stories, TRAIN_SHARES)
        for line in tell(self._read(corpus_build.TRAIN), self._makers, wanted, self._train, config.seed):
            self._report(f"training, {line}")

    def read_histories(self) -> None:
        """Add the stories of commits: beside the others, of which there are as many without them."""
        cache = RepositoryCache(self._config.cache)
        for repository in load_repositories(self._config.repositories) if self._config.commits else ():
            before = len(self._train)
            try:
                self._add_history(repository, cache.fetch(repository))
            except (FetchError, ArchiveError) as error:
                self._failed[repository.key] = str(error)
                self._report(f"FAILED  {repository.key}: {error}")
            except LicenseError as error:
                self._refused[repository.key] = str(error)
                self._report(f"REFUSED {repository.key}: {error}")
            self._report(f"{len(self._train) - before:>5} stories  {repository.key}")

    def _add_history(self, repository: Repository, clone: Path) -> None:
        config = self._config
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
            self._histories.append(RepositoryCredit(repository, " AND ".join(sorted(used))))

    def write(self) -> EditsSummary:
        """Shuffle and write both splits, the notices and, last, the summary."""
        config = self._config
        config.out.mkdir(parents=True, exist_ok=True)
        for kept in (self._train, self._heldout):
            self._dropped.update(kept.dropped)
            # Order decides batches, not secrets: a seeded generator is what is wanted.
            random.Random(config.seed).shuffle(kept.stories)
        summary = EditsSummary(
            train=tally(self._train),
            heldout=tally(self._heldout),
            dropped={reason: count for reason, count in sorted(self._dropped.items()) if count},
            refused=self._refused,
            failed=self._failed,
            decontaminated=self._train.measuring is not None,
            warnings=tuple(self._warnings),
            seed=config.seed,
        )
        heldout_credits = [credit for credit in self._credits if credit.archive.package.held_out]
        with tempfile.TemporaryDirectory(dir=config.out, prefix="partial-") as folder:
            partial = Path(folder)
            write_stories(partial / TRAIN, self._train)
            write_stories(partial / HELDOUT, self._heldout)
            self._write_notice(partial / NOTICE, corpus_build.NOTICE, self._credits, self._histories)
            self._write_notice(partial / HELDOUT_NOTICE, corpus_build.HELDOUT_NOTICE, heldout_credits, ())
            summary.write(partial / SUMMARY)
            for name in (TRAIN, HELDOUT, NOTICE, HELDOUT_NOTICE, SUMMARY):
                (partial / name).replace(config.out / name)
        return summary

    def _write_notice(
        self, path: Path, of_corpus: str, used: list[Credit], histories: Iterable[RepositoryCredit]
    ) -> None:
        """Write the corpus's own notice, and behind it the releases and histories whose differences became stories."""
        own = (self._config.corpus / of_corpus).read_text(encoding="utf-8")
        compared = "Releases compared, and commits up to the ones named"
        path.write_text(f"{own}\n{compared}\n\n{render_notice(used, histories)}", encoding="utf-8")
