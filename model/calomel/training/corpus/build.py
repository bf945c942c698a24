"""Builds the corpus: fetch, extract, decontaminate, deduplicate, shuffle, write.

Held-out packages come first, so that whatever training text shares with them is dropped from training and never the
other way round; then the other packages, then repositories: of two copies the first is kept.
"""

import logging
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from calomel.training.corpus.cleaning import is_declaration, is_test
from calomel.training.corpus.contamination import MeasuringData, read_measuring_data
from calomel.training.corpus.duplicates import SeenText
from calomel.training.corpus.errors import ArchiveError, FetchError, LicenseError
from calomel.training.corpus.extract import Extraction, extract, extract_repository
from calomel.training.corpus.fetch import DEFAULT_CACHE, DEFAULT_LOCK, ArchiveCache
from calomel.training.corpus.notice import Credit, RepositoryCredit, render_notice
from calomel.training.corpus.packages import DEFAULT_LIST, Package, load_packages
from calomel.training.corpus.repositories import DEFAULT_REPOSITORIES, Repository, RepositoryCache, load_repositories
from calomel.training.corpus.shards import SourceFile, write_shard
from calomel.training.corpus.summary import CorpusSummary, summarise

_log = logging.getLogger(__name__)

TRAIN = "train.jsonl.zst"
HELDOUT = "heldout.jsonl.zst"
SUMMARY = "summary.json"
NOTICE = "NOTICE"
# The held-out packages alone: travels with copies of the held-out shard.
HELDOUT_NOTICE = "NOTICE.heldout"

_REPOSITORY = Path(__file__).resolve().parents[4]


def default_data_folder() -> Path:
    """Return the measuring data's folder: CALOMEL_DATA, or shared/data beside the repository."""
    default = _REPOSITORY.parent / "shared" / "data"
    return Path(os.environ.get("CALOMEL_DATA") or default)


@dataclass(frozen=True, slots=True)
class CorpusConfig:
    """Everything a build depends on; the same config gives the same bytes."""

    out: Path
    cache: Path = DEFAULT_CACHE
    packages: Path = DEFAULT_LIST
    # None: packages alone.
    repositories: Path | None = DEFAULT_REPOSITORIES
    lock: Path = DEFAULT_LOCK
    data: Path = field(default_factory=default_data_folder)
    seed: int = 0
    # Share of a language's bytes, before this limit, that one source may have, so that none sets the style of the
    # whole; and bytes that each source may have at least.
    source_share: float = 0.06
    source_bytes: int = 2_500_000
    # Share of a source's bytes that may be tests: useful to complete, but repetitive.
    test_share: float = 0.15
    # Share of a source's bytes that may be .d.ts: signatures without bodies.
    declaration_share: float = 0.1
    # Share of a training file's telling lines that held-out text may know.
    heldout_share: float = 0.3


def build_corpus(config: CorpusConfig, report: Callable[[str], None] = _log.info) -> CorpusSummary:
    """Build the corpus under `config.out` and return what was done, source by source.

    A package or repository that cannot be fetched, read or used is left out and named in the summary; the rest goes on.
    `report` is told one line for each, then the summary. Raises PackageListError for a bad list.
    """
    packages = load_packages(config.packages)
    repositories = load_repositories(config.repositories) if config.repositories else ()
    config.out.mkdir(parents=True, exist_ok=True)
    build = _Build(config, report)
    for package in sorted(packages, key=lambda package: not package.held_out):
        build.add(package)
    for repository in repositories:
        build.add_repository(repository)
    summary = build.write()
    for line in summary.lines():
        report(line)
    return summary


class _Build:
    """The state of one build: what was kept, seen and dropped so far."""

    def __init__(self, config: CorpusConfig, report: Callable[[str], None]) -> None:
        self._config = config
        self._report = report
        self._archives = ArchiveCache(config.cache, config.lock)
        self._clones = RepositoryCache(config.cache)
        self._heldout_seen = SeenText(config.heldout_share)
        self._seen = SeenText()
        self._heldout: list[SourceFile] = []
        self._train: list[SourceFile] = []
        self._credits: list[Credit] = []
        self._repository_credits: list[RepositoryCredit] = []
        self._dropped: Counter[str] = Counter()
        self._refused: dict[str, str] = {}
        self._failed: dict[str, str] = {}
        self._warnings: list[str] = []
        self._measuring = self._read_measuring()

    def _read_measuring(self) -> MeasuringData | None:
        measuring = read_measuring_data(self._config.data)
        if measuring is None:
            warning = f"no measuring data at {self._config.data}: this corpus is NOT DECONTAMINATED; set CALOMEL_DATA"
            _log.warning(warning)
            self._report(f"WARNING {warning}")
            self._warnings.append(warning)
        return measuring

    def add(self, package: Package) -> None:
        """Fetch, read and filter one package; note why when it cannot be used."""

        def read() -> None:
            archive = self._archives.fetch(package)
            extraction = extract(archive, self._config.seed)
            if license_ := self._keep(package.key, extraction, held_out=package.held_out):
                self._credits.append(Credit(archive, license_))

        self._attempt(package.key, read)

    def add_repository(self, repository: Repository) -> None:
        """Clone, read and filter one repository; note why when it cannot be used."""

        def read() -> None:
            clone = self._clones.fetch(repository)
            extraction = extract_repository(clone, repository, self._config.seed)
            if license_ := self._keep(repository.key, extraction, held_out=False):
                self._repository_credits.append(RepositoryCredit(repository, license_))

        self._attempt(repository.key, read)

    def _attempt(self, key: str, read: Callable[[], None]) -> None:
        try:
            read()
        except (FetchError, ArchiveError) as error:
            self._failed[key] = str(error)
            self._report(f"FAILED  {key}: {error}")
        except LicenseError as error:
            self._refused[key] = str(error)
            self._report(f"REFUSED {key}: {error}")

    def _keep(self, key: str, extraction: Extraction, *, held_out: bool) -> str:
        """Keep what is new and within its shares; return the licences of it, or nothing."""
        dropped = Counter(extraction.dropped)
        quota = _Quota(self._config, extraction)
        kept: list[SourceFile] = []
        for file in extraction.files:
            fault = self._fault(file, held_out=held_out) or quota.fault(file)
            if fault is not None:
                dropped[fault] += 1
                continue
            quota.take(file)
            kept.append(file)
            (self._heldout_seen if held_out else self._seen).add(file.text)
        self._dropped.update(dropped)
        (self._heldout if held_out else self._train).extend(kept)
        self._report(f"{sum(map(_size, kept)):>10,} bytes {len(kept):>5} files  {key} {dict(dropped)}")
        return " AND ".join(sorted({file.license for file in kept}))

    def _fault(self, file: SourceFile, *, held_out: bool) -> str | None:
        if self._measuring and (fault := self._measuring.fault(file.text)):
            return fault
        if fault := self._heldout_seen.fault(file.text):
            return fault if held_out else "held-out duplicate"
        return None if held_out else self._seen.fault(file.text)

    def write(self) -> CorpusSummary:
        """Shuffle and write both splits, the summary and the NOTICE."""
        out = self._config.out
        train = _within_share(self._train, self._config)
        self._dropped["over source share"] += len(self._train) - len(train)
        for name, files in ((TRAIN, train), (HELDOUT, self._heldout)):
            # Order decides batches, not secrets: a seeded generator is what is wanted.
            random.Random(self._config.seed).shuffle(files)
            write_shard(out / name, files)
        summary = CorpusSummary(
            train=summarise(train),
            heldout=summarise(self._heldout),
            dropped=dict(sorted(self._dropped.items())),
            refused=self._refused,
            failed=self._failed,
            decontaminated=self._measuring is not None,
            warnings=tuple(self._warnings),
            seed=self._config.seed,
        )
        summary.write(out / SUMMARY)
        heldout = [credit for credit in self._credits if credit.archive.package.held_out]
        (out / NOTICE).write_text(render_notice(self._credits, self._repository_credits), encoding="utf-8")
        (out / HELDOUT_NOTICE).write_text(render_notice(heldout), encoding="utf-8")
        return summary


class _Quota:
    """How many bytes of one source may still be tests, and declarations."""

    def __init__(self, config: CorpusConfig, extraction: Extraction) -> None:
        whole = sum(map(_size, extraction.files))
        self._left = {
            "over test share": int(whole * config.test_share),
            "over declaration share": int(whole * config.declaration_share),
        }

    def fault(self, file: SourceFile) -> str | None:
        """Return which limit the file would break, or None."""
        return next((kind for kind in _kinds(file) if _size(file) > self._left[kind]), None)

    def take(self, file: SourceFile) -> None:
        """Count a kept file."""
        for kind in _kinds(file):
            self._left[kind] -= _size(file)


def _kinds(file: SourceFile) -> list[str]:
    kinds = []
    if is_test(file.path):
        kinds.append("over test share")
    if is_declaration(file.path):
        kinds.append("over declaration share")
    return kinds


def _within_share(files: Iterable[SourceFile], config: CorpusConfig) -> list[SourceFile]:
    """Leave out the last files of each source that has more than its share of a language."""
    files = tuple(files)
    available = Counter[str]()
    for file in files:
        available[file.language] += _size(file)
    used = Counter[tuple[str, str, str]]()
    kept = []
    for file in files:
        of = file.language, file.ecosystem, file.package
        if used[of] + _size(file) <= max(config.source_bytes, config.source_share * available[file.language]):
            used[of] += _size(file)
            kept.append(file)
    return kept


def _size(file: SourceFile) -> int:
    return len(file.text.encode())
