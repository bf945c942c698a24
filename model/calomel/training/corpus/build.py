"""Builds the corpus: fetch, extract, decontaminate, deduplicate, shuffle, write.

Held-out repositories come first, so that whatever training text shares with them is dropped from training and never the
other way round; of two copies the first is kept.
"""

from __future__ import annotations

import hashlib
import logging
import os
import random
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
from calomel.training.corpus.licenses import LicenseError, folder_licenses, header_fault, is_license
from calomel.training.corpus.repositories import (
    DEFAULT_CACHE,
    DEFAULT_REPOSITORIES,
    FetchError,
    Repository,
    fetch_clone,
    load_repositories,
    read_repository,
)
from calomel.training.corpus.shards import SourceFile, Summary, summarise, summary_lines, write_shard

_PREAMBLE = """\
This corpus is made of source files from the repositories below. Each file stays under the licence of its
repository and the copyright of its authors; the copyright lines are in the files themselves, and in the
repositories at the commits named here.
"""


@dataclass(frozen=True, slots=True, order=True)
class Credit:
    """One used repository, as a NOTICE names it: by key; where its text came from, and its licences."""

    key: str
    text: str
    held_out: bool = False


def credit_repository(repository: Repository, license_: str) -> Credit:
    """Credit what is used of a repository."""
    use = "held out: measured on, never trained on" if repository.held_out else "training"
    text = (
        f"{repository.name}\n  url: {repository.url}\n  commit: {repository.commit}\n  license: {license_}\n"
        f"  use: {use}\n"
    )
    return Credit(repository.key, text, repository.held_out)


# Folders of build output that a repository has checked in.
_CHECKED_IN = frozenset({"dist", "esm", "cjs", "_esm", "_cjs"})


# A repository's usable files, in a seeded order, and why the others were dropped.
Extraction = tuple[list[SourceFile], Counter[str]]


def extract_repository(clone: Path, repository: Repository, seed: int) -> Extraction:
    """Read, license-check and clean the source files of a bare clone at the pinned commit, in all languages.

    Raises LicenseError when the repository may not be used, FetchError when it cannot be read.
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

    files: list[SourceFile] = []
    for path, content in read_repository(clone, repository.commit, wanted):
        fault = text_fault(path, content) or header_fault(content.decode())
        if fault is not None:
            dropped[fault] += 1
            continue
        language = LANGUAGES[PurePosixPath(path).suffix]
        files.append(SourceFile(repository.name, path, language, license_of(path) or "", content.decode()))
    files.sort(key=lambda file: _rank(file, seed))
    return files, dropped


def _rank(file: SourceFile, seed: int) -> tuple[bool, bool, str]:
    """Order files so that a limit keeps a spread of them: code, then tests, then declarations."""
    digest = hashlib.sha256(f"{seed}:{file.package}:{file.path}".encode()).hexdigest()
    return is_declaration(file.path), is_test(file.path), digest


_log = logging.getLogger(__name__)

TRAIN = "train.jsonl.zst"
HELDOUT = "heldout.jsonl.zst"
SUMMARY = "summary.json"
NOTICE = "NOTICE"
# The held-out repositories alone: travels with copies of the held-out shard.
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
    repositories: Path = DEFAULT_REPOSITORIES
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


def build_corpus(config: CorpusConfig, report: Callable[[str], None] = _log.info) -> Summary:
    """Build the corpus under `config.out` and return what was done, repository by repository.

    One that cannot be fetched, read or used is left out and named in the summary; the rest goes on. `report` is told
    one line for each, then the summary. Raises RepositoryListError for a bad list.
    """
    repositories = load_repositories(config.repositories)
    config.out.mkdir(parents=True, exist_ok=True)
    build = _Build(config, report)
    for repository in repositories:
        build.add(repository)
    summary = build.write()
    for line in summary_lines(summary):
        report(line)
    return summary


class Record:
    """What a build uses, and what it leaves out and why.

    Attributes:
        summary: of all of it.
        measuring: what must not be trained on; None where there is none, which is a warning.
        credits: what is used.
    """

    def __init__(self, data: Path, seed: int, what: str, report: Callable[[str], None]) -> None:
        """Nothing is left out yet. `what` is built; `report` is told what is missing."""
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
        """Read a repository; note why when it cannot be used."""
        try:
            read()
        except FetchError as error:
            self.summary.failed[key] = str(error)
            self.report(f"FAILED  {key}: {error}")
        except LicenseError as error:
            self.summary.refused[key] = str(error)
            self.report(f"REFUSED {key}: {error}")

    def notices(self) -> tuple[str, str]:
        """Return the NOTICE of everything, and that of the held-out repositories alone: a paragraph for each source."""
        used = sorted(self.credits)
        return _notice(used), _notice(credit for credit in used if credit.held_out)


def _notice(used: Iterable[Credit]) -> str:
    return "\n".join([_PREAMBLE, *(credit.text for credit in used)])


class _Build:
    """The state of one build: what was kept, seen and dropped so far."""

    def __init__(self, config: CorpusConfig, report: Callable[[str], None]) -> None:
        self._config = config
        self._record = Record(config.data, config.seed, "this corpus is", report)
        self._heldout_seen = SeenText(config.heldout_share)
        self._seen = SeenText()
        self._heldout: list[SourceFile] = []
        self._train: list[SourceFile] = []

    def add(self, repository: Repository) -> None:
        """Fetch, read and filter one repository; note why when it cannot be used."""
        self._record.attempt(repository.key, partial(self._read, repository))

    def _read(self, repository: Repository) -> None:
        extraction = extract_repository(fetch_clone(self._config.cache, repository), repository, self._config.seed)
        kept = self._keep(extraction, held_out=repository.held_out)
        self._record.report(f"{sum(map(_size, kept)):>10,} bytes {len(kept):>5} files  {repository.key}")
        if kept:
            licenses = " AND ".join(sorted({file.license for file in kept}))
            self._record.credits.append(credit_repository(repository, licenses))

    def _keep(self, extraction: Extraction, *, held_out: bool) -> list[SourceFile]:
        """Keep what is new and within its shares; returns it."""
        (files, faults), dropped = extraction, self._record.summary.dropped
        whole = sum(map(_size, files))
        dropped.update(faults)
        # Bytes that may still be tests, and declarations.
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
            # Order decides batches, not secrets: a seeded generator is what is wanted.
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
    """Leave out the last files of each repository that has more than its share of a language."""
    files = tuple(files)
    available = Counter[str]()
    for file in files:
        available[file.language] += _size(file)
    used = Counter[tuple[str, str]]()
    kept = []
    for file in files:
        of = file.language, file.package
        if used[of] + _size(file) <= max(config.source_bytes, config.source_share * available[file.language]):
            used[of] += _size(file)
            kept.append(file)
    return kept


def _size(file: SourceFile) -> int:
    return len(file.text.encode())
