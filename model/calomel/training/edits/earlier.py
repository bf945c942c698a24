"""Fetches an earlier release of packages that the corpus has, and pairs its files with the later ones by path."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from calomel.training.corpus.errors import PackageListError
from calomel.training.corpus.extract import Extraction, extract
from calomel.training.corpus.fetch import Archive, ArchiveCache
from calomel.training.corpus.packages import Package, load_packages
from calomel.training.corpus.shards import SourceFile

DEFAULT_RELEASES = Path(__file__).with_name("releases.toml")
# Of the packages of `CALIBRATION_LIST`.
CALIBRATION_RELEASES = Path(__file__).with_name("calibration.toml")
DEFAULT_RELEASES_LOCK = Path(__file__).with_name("releases.lock.json")

# Debian's folder of a crate, and some of Go's, carry the version.
_VERSION = re.compile(r"-v?\d+(?:\.\d+)+[^/]*(?=/)")


@dataclass(frozen=True, slots=True)
class Release:
    """An archive and what of it may be used."""

    archive: Archive
    extraction: Extraction


@dataclass(frozen=True, slots=True)
class ReleasePair:
    """Two releases of one package."""

    older: Release
    newer: Release

    @property
    def package(self) -> Package:
        """The later package."""
        return self.newer.archive.package

    def files(self) -> Iterator[tuple[SourceFile, SourceFile]]:
        """Yield the files that both releases have, older and newer, by path."""
        older = {_stem(file.path): file for file in self.older.extraction.files}
        for file in sorted(self.newer.extraction.files, key=lambda file: file.path):
            if before := older.get(_stem(file.path)):
                yield before, file


def paired(packages: Path, releases: Path) -> tuple[tuple[Package, Package], ...]:
    """Read both lists and return each listed earlier release with the package it belongs to, held-out ones first.

    Raises PackageListError when a release belongs to no package, or is held out on one side alone.
    """
    newer = {(package.ecosystem, package.name): package for package in load_packages(packages)}
    pairs = []
    for older in load_packages(releases):
        package = newer.get((older.ecosystem, older.name))
        if package is None:
            raise PackageListError(f"{older.key}: no such package in {packages.name}")
        if package.held_out != older.held_out:
            raise PackageListError(f"{older.key}: held out in one of {packages.name} and {releases.name} alone")
        if package.version == older.version:
            raise PackageListError(f"{older.key}: the same version as in {packages.name}")
        pairs.append((older, package))
    return tuple(sorted(pairs, key=lambda pair: not pair[1].held_out))


def fetch_pair(older: Package, newer: Package, earlier: ArchiveCache, later: ArchiveCache, seed: int) -> ReleasePair:
    """Fetch and read both releases; each is checked against the lock file of its own list.

    Raises FetchError, ArchiveError or LicenseError as `fetch` and `extract` do.
    """
    old, new = earlier.fetch(older), later.fetch(newer)
    return ReleasePair(Release(old, extract(old, seed)), Release(new, extract(new, seed)))


def _stem(path: str) -> str:
    return _VERSION.sub("", path)
