"""Turns one archive or repository into clean candidate files, with the licence of each and a count of the rest."""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from calomel.training.corpus.archives import Member, read_members
from calomel.training.corpus.cleaning import (
    LANGUAGES,
    is_declaration,
    is_test,
    language_of,
    path_fault,
    text_fault,
)
from calomel.training.corpus.errors import LicenseError
from calomel.training.corpus.fetch import Archive
from calomel.training.corpus.licenses import refuse_header
from calomel.training.corpus.packages import Ecosystem, Package
from calomel.training.corpus.provenance import is_metadata, read_provenance
from calomel.training.corpus.repositories import Repository, folder_licenses, is_license, read_repository
from calomel.training.corpus.shards import SourceFile

# A package that ships its sources ships its build output too: the sources are enough.
_BUILT = re.compile(r"^(?:dist[\w.-]*|lib[\w.-]*|build|cjs|esm|es|mjs|out|compiled|types|_cjs|_esm|_types)/")
MIN_SOURCES = 3
# Folders of build output that a repository has checked in.
_CHECKED_IN = frozenset({"dist", "esm", "cjs", "_esm", "_cjs"})
# How a repository's files are marked where a package's have the name of their registry.
GIT = "git"


@dataclass(frozen=True, slots=True)
class Extraction:
    """A source's usable files, in a seeded order, and why the others were dropped."""

    files: tuple[SourceFile, ...]
    dropped: Counter[str] = field(default_factory=Counter)


def extract(archive: Archive, seed: int) -> Extraction:
    """Read, license-check and clean one archive's source files.

    Raises LicenseError when the package may not be used, ArchiveError when it cannot be read.
    """
    package = archive.package
    metadata: list[Member] = []
    sources: list[Member] = []
    for member in read_members(archive.path):
        if is_metadata(package.ecosystem, member.path):
            metadata.append(member)
        elif language_of(member.path) in languages_of(package):
            sources.append(member)
    provenance = read_provenance(package.ecosystem, metadata)
    dropped: Counter[str] = Counter()
    files: list[SourceFile] = []
    for member in _without_built(package, sources, dropped):
        inner = Member(_inner_path(package, member.path), member.content)
        fault = path_fault(inner.path) or _content_fault(inner)
        license_ = provenance.license_of(member.path)
        if fault is not None or license_ is None:
            dropped[fault or "license"] += 1
            continue
        files.append(_source_file(package.name, package.ecosystem, inner, license_))
    files.sort(key=lambda file: _rank(file, seed))
    return Extraction(tuple(files), dropped)


def extract_repository(clone: Path, repository: Repository, seed: int) -> Extraction:
    """Read, license-check and clean the source files of a bare clone at the pinned commit, in all languages.

    Raises LicenseError when the repository may not be used, ArchiveError or FetchError when it cannot be read.
    """
    licenses = folder_licenses(repository, read_repository(clone, repository.commit, is_license))
    dropped: Counter[str] = Counter()

    def wanted(path: str) -> bool:
        if language_of(path) is None:
            return False
        fault = path_fault(path) or ("build output" if _CHECKED_IN.intersection(path.split("/")) else None)
        fault = fault or (None if licenses.license_of(path) else "license")
        if fault is not None:
            dropped[fault] += 1
        return fault is None

    files: list[SourceFile] = []
    for member in read_repository(clone, repository.commit, wanted):
        license_ = licenses.license_of(member.path)
        fault = _content_fault(member)
        if fault is not None or license_ is None:
            dropped[fault or "license"] += 1
            continue
        files.append(_source_file(repository.name, GIT, member, license_))
    files.sort(key=lambda file: _rank(file, seed))
    return Extraction(tuple(files), dropped)


def languages_of(package: Package) -> frozenset[str]:
    """Return the languages that a package is listed for; what else it ships is build output."""
    match package.ecosystem:
        case Ecosystem.PYPI:
            return frozenset({"python"})
        case Ecosystem.NPM:
            return frozenset({"typescript", "javascript"})
        case Ecosystem.DEBIAN:
            return frozenset({"rust"} if "rust" in package.name else {"go"})


def _inner_path(package: Package, path: str) -> str:
    # npm tarballs hold everything in one folder, by custom `package/`.
    return path.partition("/")[2] if package.ecosystem is Ecosystem.NPM else path


def _without_built(package: Package, members: list[Member], dropped: Counter[str]) -> list[Member]:
    if package.ecosystem is not Ecosystem.NPM:
        return members
    paths = [_inner_path(package, member.path) for member in members]
    sources = [p for p in paths if _is_source(p)]
    if len(sources) < MIN_SOURCES:
        return members
    kept = [m for m in members if not _BUILT.match(_inner_path(package, m.path))]
    dropped["build output"] += len(members) - len(kept)
    return kept


def _is_source(path: str) -> bool:
    if is_declaration(path) or _BUILT.match(path):
        return False
    return language_of(path) == "typescript" or path.startswith("src/") or "/src/" in path


def _content_fault(member: Member) -> str | None:
    fault = text_fault(member.path, member.content)
    if fault is not None:
        return fault
    try:
        refuse_header(member.content.decode("utf-8"))
    except LicenseError:
        return "license"
    return None


def _source_file(package: str, ecosystem: str, member: Member, license_: str) -> SourceFile:
    return SourceFile(
        package=package,
        ecosystem=ecosystem,
        path=member.path,
        language=LANGUAGES[PurePosixPath(member.path).suffix],
        license=license_,
        text=member.content.decode("utf-8"),
    )


def _rank(file: SourceFile, seed: int) -> tuple[bool, bool, str]:
    """Order files so that a limit keeps a spread of them: code, then tests, then declarations."""
    digest = hashlib.sha256(f"{seed}:{file.package}:{file.path}".encode()).hexdigest()
    return is_declaration(file.path), is_test(file.path), digest
