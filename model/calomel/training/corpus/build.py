"""Builds the corpus: fetch, extract, decontaminate, deduplicate, shuffle, write.

Held-out repositories come first, so that training text that shares something with them is dropped, never the other way
round; then packages, then the other repositories: of two copies the first is kept.
"""

from __future__ import annotations

import hashlib
import logging
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from calomel.storage import write_whole
from calomel.training.corpus.cleaning import (
    LANGUAGES,
    SeenText,
    is_declaration,
    is_test,
    language_of,
    path_fault,
    read_measuring_data,
    text_fault,
)
from calomel.training.corpus.licenses import folder_licenses, header_fault, is_license, is_metadata, read_license
from calomel.training.corpus.packages import (
    DEFAULT_CACHE,
    DEFAULT_LIST,
    DEFAULT_LOCK,
    Archive,
    ArchiveCache,
    ArchiveError,
    FetchError,
    LicenseError,
    Member,
    Package,
    load_packages,
    read_members,
)
from calomel.training.corpus.repositories import (
    DEFAULT_REPOSITORIES,
    Repository,
    fetch_clone,
    load_repositories,
    read_repository,
)
from calomel.training.corpus.shards import SourceFile, Summary, summarise, summary_lines, write_shard

_PREAMBLE = """\
This corpus is made of source files from the packages and repositories below. Each file stays under the licence
of its package or repository and the copyright of its authors; the copyright lines are in the files
themselves, in the archives, and in the repositories at the commits named here.
"""


@dataclass(frozen=True, slots=True, order=True)
class Credit:
    """One used package or repository, as in a NOTICE: its key, where its text came from, and its licences."""

    key: str
    text: str
    held_out: bool = False


def credit_package(archive: Archive, license_: str) -> Credit:
    """Credit what is used of a package."""
    package = archive.package
    text = (
        f"{package.name} {package.version}\n  ecosystem: {package.ecosystem}\n  license: {license_}\n"
        f"  archive: {archive.path.name}\n  sha256: {archive.sha256}\n  use: training\n"
    )
    return Credit(package.key, text)


def credit_repository(repository: Repository, license_: str) -> Credit:
    """Credit what is used of a repository."""
    use = "held out: measured on, never trained on" if repository.held_out else "training"
    text = (
        f"{repository.name}\n  url: {repository.url}\n  commit: {repository.commit}\n  license: {license_}\n"
        f"  use: {use}\n"
    )
    return Credit(repository.key, text, repository.held_out)


# A package that ships its sources ships its build output too: the sources are enough.
_BUILT = re.compile(r"^(?:dist[\w.-]*|lib[\w.-]*|build|cjs|esm|es|mjs|out|compiled|types|_cjs|_esm|_types)/")
MIN_SOURCES = 3
# What a package is listed for; anything else it ships is build output.
_LANGUAGES_OF = {"pypi": {"python"}, "npm": {"typescript", "javascript"}}
# Folders of build output that a repository has checked in.
_CHECKED_IN = frozenset({"dist", "esm", "cjs", "_esm", "_cjs"})
# Marks a repository's files, where a package's have the name of their registry.
GIT = "git"


# A source's usable files, in a seeded order, and why the others were dropped.
Extraction = tuple[list[SourceFile], Counter[str]]


def extract(archive: Archive, seed: int) -> Extraction:
    """Read, license-check and clean one archive's source files.

    Raises LicenseError if the package may not be used, ArchiveError if it cannot be read.
    """
    package = archive.package
    metadata: list[Member] = []
    sources: list[Member] = []
    for member in read_members(archive.path):
        if is_metadata(package.ecosystem, member.path):
            metadata.append(member)
        elif language_of(member.path) in _LANGUAGES_OF[package.ecosystem]:
            sources.append(member)
    license_ = read_license(package.ecosystem, metadata)
    dropped: Counter[str] = Counter()
    if package.ecosystem == "npm":
        # npm tarballs hold everything in one folder, usually `package/`.
        inner = [Member(member.path.partition("/")[2], member.content) for member in sources]
        shipped = sum(_is_source(member.path) for member in inner) >= MIN_SOURCES
        sources = [member for member in inner if not (shipped and _BUILT.match(member.path))]
        dropped["build output"] = len(inner) - len(sources)
    return _cleaned(package.name, package.ecosystem, ((member, license_) for member in sources), dropped, seed)


def extract_repository(clone: Path, repository: Repository, seed: int) -> Extraction:
    """Read, license-check and clean the source files of a bare clone at the pinned commit, in all languages.

    Raises LicenseError if the repository may not be used, ArchiveError or FetchError if it cannot be read.
    """
    license_of = folder_licenses(repository.license, read_repository(clone, repository.commit, is_license))
    dropped: Counter[str] = Counter()

    def wanted(path: str) -> bool:
        if language_of(path) is None:
            return False
        fault = path_fault(path) or ("build output" if _CHECKED_IN.intersection(path.split("/")) else None)
        fault = fault or (None if license_of(path) else "license")
        if fault is not None:
            dropped[fault] += 1
        return fault is None

    members = read_repository(clone, repository.commit, wanted)
    licensed = ((member, license_of(member.path)) for member in members)
    return _cleaned(repository.name, GIT, licensed, dropped, seed)


def _cleaned(
    name: str, ecosystem: str, licensed: Iterable[tuple[Member, str | None]], dropped: Counter[str], seed: int
) -> Extraction:
    """Return the usable files, and count the others."""
    files: list[SourceFile] = []
    for member, license_ in licensed:
        fault = path_fault(member.path) or text_fault(member.path, member.content)
        if fault is not None or license_ is None:
            dropped[fault or "license"] += 1
            continue
        language, text = LANGUAGES[PurePosixPath(member.path).suffix], member.content.decode("utf-8")
        if fault := header_fault(text):
            dropped[fault] += 1
            continue
        files.append(SourceFile(name, ecosystem, member.path, language, license_, text))
    files.sort(key=lambda file: _rank(file, seed))
    return files, dropped


def _is_source(path: str) -> bool:
    if is_declaration(path) or _BUILT.match(path):
        return False
    return language_of(path) == "typescript" or path.startswith("src/") or "/src/" in path


def _rank(file: SourceFile, seed: int) -> tuple[bool, bool, str]:
    """Order files so that a limit keeps a mix of them: code, then tests, then declarations."""
    digest = hashlib.sha256(f"{seed}:{file.package}:{file.path}".encode()).hexdigest()
    return is_declaration(file.path), is_test(file.path), digest


_log = logging.getLogger(__name__)

TRAIN = "train.jsonl.zst"
HELDOUT = "heldout.jsonl.zst"
SUMMARY = "summary.json"
NOTICE = "NOTICE"
# The NOTICE of the held-out repositories alone: goes with copies of the held-out shard.
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
    # None for one of the lists: use the other alone.
    packages: Path | None = DEFAULT_LIST
    repositories: Path | None = DEFAULT_REPOSITORIES
    lock: Path = DEFAULT_LOCK
    data: Path = field(default_factory=default_data_folder)
    seed: int = 0
    # Share of a language's bytes, before this limit, that one source may have, so that none dominates the style; and
    # bytes that each source may have in any case.
    source_share: float = 0.06
    source_bytes: int = 2_500_000
    # Share of a source's bytes that may be tests: useful to complete, but repetitive.
    test_share: float = 0.15
    # Share of a source's bytes that may be .d.ts: signatures without bodies.
    declaration_share: float = 0.1
    # Share of a training file's distinctive lines that held-out text may contain.
    heldout_share: float = 0.3


def build_corpus(config: CorpusConfig, report: Callable[[str], None] = _log.info) -> Summary:
    """Build the corpus under `config.out` and return what was done, source by source.

    A package or repository that cannot be fetched, read or used is left out and named in the summary; the build goes
    on. `report` gets one line for each, then the summary. Raises PackageListError for a bad list.
    """
    packages = load_packages(config.packages) if config.packages else ()
    repositories = load_repositories(config.repositories) if config.repositories else ()
    config.out.mkdir(parents=True, exist_ok=True)
    build = _Build(config, report)
    held_out = [repository for repository in repositories if repository.held_out]
    sources: tuple[Package | Repository, ...] = (*held_out, *packages, *repositories[len(held_out) :])
    for source in sources:
        build.add(source)
    summary = build.write()
    for line in summary_lines(summary):
        report(line)
    return summary


class Record:
    """What a build uses, and what it leaves out and why.

    Attributes:
        summary: of the whole build.
        measuring: what must not be trained on; None if there is none, which is a warning.
        credits: the used sources.
    """

    def __init__(self, data: Path, seed: int, what: str, report: Callable[[str], None]) -> None:
        """Nothing is left out yet. `what` is built; `report` gets what is missing."""
        self.report = report
        self.credits: list[Credit] = []
        self.measuring = read_measuring_data(data)
        self.summary = Summary(seed, decontaminated=self.measuring is not None)
        if self.measuring is None:
            warning = f"no measuring data at {data}: {what} NOT DECONTAMINATED; set CALOMEL_DATA"
            _log.warning(warning)
            report(f"WARNING {warning}")
            self.summary.warnings.append(warning)

    def attempt(self, key: str, read: Callable[[], None]) -> None:
        """Read a source; note why if it cannot be used."""
        try:
            read()
        except (FetchError, ArchiveError) as error:
            self.summary.failed[key] = str(error)
            self.report(f"FAILED  {key}: {error}")
        except LicenseError as error:
            self.summary.refused[key] = str(error)
            self.report(f"REFUSED {key}: {error}")

    def notices(self) -> tuple[str, str]:
        """Return the NOTICE of everything, and that of the held-out repositories: a paragraph per source."""
        used = sorted(self.credits)
        return _notice(used), _notice(credit for credit in used if credit.held_out)


def _notice(used: Iterable[Credit]) -> str:
    return "\n".join([_PREAMBLE, *(credit.text for credit in used)])


class _Build:
    """The state of one build: what was kept, seen and dropped so far."""

    def __init__(self, config: CorpusConfig, report: Callable[[str], None]) -> None:
        self._config = config
        self._record = Record(config.data, config.seed, "this corpus is", report)
        self._archives = ArchiveCache(config.cache, config.lock)
        self._heldout_seen = SeenText(config.heldout_share)
        self._seen = SeenText()
        self._heldout: list[SourceFile] = []
        self._train: list[SourceFile] = []

    def add(self, source: Package | Repository) -> None:
        """Fetch, read and filter one package or repository; note why if it cannot be used."""
        self._record.attempt(source.key, partial(self._read, source))

    def _read(self, source: Package | Repository) -> None:
        seed = self._config.seed
        if isinstance(source, Package):
            archive = self._archives.fetch(source)
            extraction, credit = extract(archive, seed), partial(credit_package, archive)
        else:
            extraction = extract_repository(fetch_clone(self._config.cache, source), source, seed)
            credit = partial(credit_repository, source)
        held_out = isinstance(source, Repository) and source.held_out
        kept = self._keep(extraction, held_out=held_out)
        self._record.report(f"{sum(map(_size, kept)):>10,} bytes {len(kept):>5} files  {source.key}")
        if kept:
            self._record.credits.append(credit(" AND ".join(sorted({file.license for file in kept}))))

    def _keep(self, extraction: Extraction, *, held_out: bool) -> list[SourceFile]:
        """Keep the files that are new and within their shares; returns them."""
        (files, faults), dropped = extraction, self._record.summary.dropped
        whole = sum(map(_size, files))
        dropped.update(faults)
        # Bytes left for tests, and for declarations.
        left = {
            "over test share": int(whole * self._config.test_share),
            "over declaration share": int(whole * self._config.declaration_share),
        }
        kept: list[SourceFile] = []
        for file in files:
            kinds = [kind for kind, is_kind in _LIMITED.items() if is_kind(file.path)]
            over = next((kind for kind in kinds if _size(file) > left[kind]), None)
            if fault := self._fault(file, held_out=held_out) or over:
                dropped[fault] += 1
                continue
            for kind in kinds:
                left[kind] -= _size(file)
            kept.append(file)
            (self._heldout_seen if held_out else self._seen).add(file.text)
        (self._heldout if held_out else self._train).extend(kept)
        return kept

    def _fault(self, file: SourceFile, *, held_out: bool) -> str | None:
        if self._record.measuring and (fault := self._record.measuring.fault(file.text)):
            return fault
        if fault := self._heldout_seen.fault(file.text):
            return fault if held_out else "held-out duplicate"
        return None if held_out else self._seen.fault(file.text)

    def write(self) -> Summary:
        """Shuffle and write both splits, the summary and the NOTICE."""
        out = self._config.out
        train = _within_share(self._train, self._config)
        self._record.summary.dropped["over source share"] += len(self._train) - len(train)
        for name, files in ((TRAIN, train), (HELDOUT, self._heldout)):
            # The order only affects batches, not secrets: a seeded generator is intended.
            random.Random(self._config.seed).shuffle(files)
            write_shard(out / name, files)
        summary = self._record.summary
        summary.train, summary.heldout = summarise(train), summarise(self._heldout)
        summary.write(out / SUMMARY)
        for name, notice in zip((NOTICE, HELDOUT_NOTICE), self._record.notices(), strict=True):
            write_whole(out / name, notice)
        return summary


_LIMITED = {"over test share": is_test, "over declaration share": is_declaration}


def _within_share(files: Iterable[SourceFile], config: CorpusConfig) -> list[SourceFile]:
    """Leave out the last files of each source that exceeds its share of a language."""
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
