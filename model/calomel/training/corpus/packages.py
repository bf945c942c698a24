"""The hand-written list of packages that the corpus is made of, each pinned to one version."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from calomel.training.corpus.errors import PackageListError

DEFAULT_LIST = Path(__file__).with_name("packages.toml")
# Those that filters are fitted on; none of them is in the other list.
CALIBRATION_LIST = Path(__file__).with_name("calibration.toml")

# A list that a person wrote and can review; more than this is a crawl.
MAX_PACKAGES = 240

# Names and versions become command-line arguments and file names, so neither may start with a
# dash or climb out of a folder. npm scopes are the one place where a slash is legal.
_NAME = re.compile(r"(?:@[a-z0-9][a-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._+-]*")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~:_-]*")


class Ecosystem(StrEnum):
    """The registry that a package is fetched from."""

    PYPI = "pypi"
    NPM = "npm"
    DEBIAN = "debian"


@dataclass(frozen=True, slots=True)
class Package:
    """One pinned package; a held-out one is only ever measured on, never trained on."""

    ecosystem: Ecosystem
    name: str
    version: str
    held_out: bool = False

    @property
    def key(self) -> str:
        """Unique in a list: ecosystem, name and version."""
        return f"{self.ecosystem}/{self.name}@{self.version}"


def load_packages(path: Path = DEFAULT_LIST) -> tuple[Package, ...]:
    """Read a package list, in its own order.

    Raises PackageListError when the file is not TOML, an entry is incomplete, a name appears
    twice, or the list is longer than MAX_PACKAGES.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise PackageListError(f"{path.name}: {error}") from error
    packages = tuple(_package(entry) for entry in table.get("package", []))
    if len(packages) > MAX_PACKAGES:
        raise PackageListError(f"{path.name}: {len(packages)} packages, at most {MAX_PACKAGES}")
    _refuse_twins(packages)
    return packages


def _package(entry: dict[str, object]) -> Package:
    name, version = str(entry.get("name", "")), str(entry.get("version", ""))
    if not _NAME.fullmatch(name):
        raise PackageListError(f"not a package name: {name!r}")
    if not _VERSION.fullmatch(version):
        raise PackageListError(f"{name}: not a pinned version: {version!r}")
    try:
        ecosystem = Ecosystem(str(entry.get("ecosystem", "")))
    except ValueError as error:
        raise PackageListError(f"{name}: {error}") from error
    return Package(ecosystem, name, version, held_out=entry.get("held_out") is True)


def _refuse_twins(packages: Iterable[Package]) -> None:
    seen: set[tuple[Ecosystem, str]] = set()
    for package in packages:
        if (package.ecosystem, package.name) in seen:
            raise PackageListError(f"{package.ecosystem}/{package.name} is listed twice")
        seen.add((package.ecosystem, package.name))
