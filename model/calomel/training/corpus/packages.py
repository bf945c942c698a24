"""Packages: the list of them, each pinned to one version, their archives in a cache, and the archives' contents.

Archives are fetched one after another with each registry's own client. Nothing is enumerated and no package code runs:
wheels only, no dependencies, no npm scripts. Archives are untrusted, so each limit here is a refusal: links and devices
are not followed, no path may climb out of the archive, and sizes are checked on the bytes read, not on the header.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from calomel.storage import write_whole
from calomel.training.corpus.shards import CorpusError


class PackageListError(CorpusError):
    """The package list is not valid: the message names the entry and the field."""


class FetchError(CorpusError):
    """An archive could not be downloaded, or is not the one in the lock file."""


class ArchiveError(CorpusError):
    """An archive is malformed, too large, or tries to write outside its own folder."""


class LicenseError(CorpusError):
    """A package's licence is unknown or not on the allow-list."""


DEFAULT_LIST = Path(__file__).with_name("packages.toml")

MAX_PACKAGES = 240

# Names and versions become command-line arguments and file names, so neither may start with a
# dash or climb out of a folder. npm scopes are the only place where a slash is legal.
_NAME = r"^(?:@[a-z0-9][a-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._+-]*$"
_VERSION = r"^[A-Za-z0-9][A-Za-z0-9.+~:_-]*$"


# The registry that a package is fetched from.
Ecosystem = Literal["pypi", "npm"]


@dataclass(frozen=True, slots=True)
class Package:
    """One pinned package."""

    ecosystem: Ecosystem
    name: Annotated[str, Field(pattern=_NAME)]
    version: Annotated[str, Field(pattern=_VERSION)]

    @property
    def key(self) -> str:
        """Ecosystem, name and version."""
        return f"{self.ecosystem}/{self.name}@{self.version}"


class _Listed(Protocol):
    @property
    def key(self) -> str: ...


Entry = TypeVar("Entry", bound=_Listed)


def load_list(path: Path, kind: str, most: int, entry: type[Entry]) -> tuple[Entry, ...]:
    """Read a list's entries of a kind, in its own order.

    Raises PackageListError if the file is not TOML, a field of an entry is missing or malformed, an entry appears
    twice, or there are more than `most`: a list must be short enough for a person to write and review; more is a crawl.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8")).get(kind, [])
        entries: list[Entry] = TypeAdapter(list[entry]).validate_python(found)  # type: ignore[valid-type]
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise PackageListError(f"{path.name}: {error}") from error
    if len(entries) > most:
        raise PackageListError(f"{path.name}: more than {most} entries")
    titles = Counter(entry.key.rpartition("@")[0].lower() for entry in entries)
    if twice := [title for title, count in titles.items() if count > 1]:
        raise PackageListError(f"{twice[0]} is listed twice")
    return tuple(entries)


def load_packages(path: Path = DEFAULT_LIST) -> tuple[Package, ...]:
    """Read a package list, in its own order; raises PackageListError as `load_list` does."""
    return load_list(path, "package", MAX_PACKAGES, Package)


DEFAULT_LOCK = Path(__file__).with_name("packages.lock.json")
DEFAULT_CACHE = Path("~/.cache/calomel/corpus")

# Seconds after which a download counts as failed.
DOWNLOAD_TIMEOUT = 600

# One fixed target, so that every machine downloads (and hashes) the same wheel.
_WHEEL_TARGET = (
    *("--python-version", "3.13", "--implementation", "cp"),
    *("--abi", "cp313", "--abi", "abi3", "--abi", "none"),
    *("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_17_x86_64"),
    *("--platform", "manylinux2014_x86_64", "--platform", "any"),
)


@dataclass(frozen=True, slots=True)
class Archive:
    """One downloaded archive whose bytes match the lock file."""

    package: Package
    path: Path
    sha256: str


class ArchiveCache:
    """Archives on disk, and the lock file with the hash of each package."""

    def __init__(self, folder: Path, lock: Path) -> None:
        """Keep archives under `folder`; read `lock` now, extend it as packages are added."""
        self._folder = folder.expanduser()
        self._lock = lock
        self._entries: dict[str, dict[str, str]] = {}
        if lock.exists():
            self._entries = json.loads(lock.read_text(encoding="utf-8"))

    def fetch(self, package: Package) -> Archive:
        """Return the package's archive, downloading it only if the cache lacks it.

        Raises FetchError if the client fails, or the bytes differ from the locked ones.
        """
        entry = self._entries.get(package.key)
        shelf = self._folder / package.ecosystem
        shelf.mkdir(parents=True, exist_ok=True)
        if entry and (path := shelf / Path(entry["file"]).name).exists():
            if (sha256 := _sha256(path)) != entry["sha256"]:
                raise FetchError(f"{package.key}: cached {path.name} is {sha256}, not {entry['sha256']}")
            return Archive(package, path, sha256)
        with tempfile.TemporaryDirectory(dir=self._folder, prefix="download-") as landing:
            run_client(download_command(package), Path(landing))
            files = [path for path in Path(landing).iterdir() if path.is_file()]
            if len(files) != 1:
                raise FetchError(f"{package.key}: expected one archive, got {len(files)}")
            sha256 = _sha256(files[0])
            if entry and entry["sha256"] != sha256:
                raise FetchError(f"{package.key}: the lock file has {entry['sha256']}, not {sha256}")
            path = shelf / files[0].name
            shutil.move(files[0], path)
        if entry is None:
            self._entries[package.key] = {"file": path.name, "sha256": sha256}
            write_whole(self._lock, json.dumps(dict(sorted(self._entries.items())), indent=1) + "\n")
        return Archive(package, path, sha256)


def download_command(package: Package) -> list[str]:
    """Return the registry client's command that leaves exactly one archive in its folder."""
    if package.ecosystem == "npm":
        return ["npm", "pack", "--ignore-scripts", f"{package.name}@{package.version}"]
    client = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    return [*client, *_WHEEL_TARGET, "-d", ".", f"{package.name}=={package.version}"]


def run_client(command: list[str], folder: Path) -> None:
    """Run one registry client in `folder`; raise FetchError with the end of its output if it fails."""
    run(command, command[-1], DOWNLOAD_TIMEOUT, cwd=folder)


def run(command: Sequence[str], what: str, timeout: int, **options: Any) -> bytes:
    """Return a program's output; if it fails, raise FetchError with `what` and the end of its output.

    `options` are those of `subprocess.run`.
    """
    try:
        # A list, no shell; names from lists of sources are validated when they are read.
        done: subprocess.CompletedProcess[bytes] = subprocess.run(  # noqa: S603
            command, stdin=subprocess.DEVNULL, check=True, capture_output=True, timeout=timeout, **options
        )
    except FileNotFoundError as error:
        raise FetchError(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise FetchError(f"{what}: no answer in {timeout} s") from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.decode("utf-8", errors="replace").strip() or f"status {error.returncode}").splitlines()[-1]
        raise FetchError(f"{what}: {last}") from error
    return done.stdout


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Bytes. A source file worth training on is far smaller; larger ones are skipped unread.
MAX_MEMBER_BYTES = 2_000_000
# Bytes of everything read from one archive: far above any source package, far below a zip bomb.
MAX_TOTAL_BYTES = 1_000_000_000
# Bytes of an archive's tar, compressed or not.
MAX_TAR_BYTES = 2_000_000_000
# Entries in one archive.
MAX_MEMBERS = 200_000


@dataclass(frozen=True, slots=True)
class Member:
    """One regular file of an archive; `path` is relative, with forward slashes."""

    path: str
    content: bytes


def read_members(archive: Path) -> Iterator[Member]:
    """Yield an archive's regular files of at most MAX_MEMBER_BYTES, in archive order.

    The kind is determined by the file's name: .whl or .tgz.
    Raises ArchiveError if the archive is malformed, unsafe or over a limit.
    """
    reader = {".whl": _read_zip, ".tgz": _read_tgz}.get(archive.suffix)
    if reader is None:
        raise ArchiveError(f"{archive.name}: not a .whl or .tgz")
    total = 0
    try:
        for count, member in enumerate(reader(archive)):
            total += len(member.content)
            if count >= MAX_MEMBERS or total > MAX_TOTAL_BYTES:
                raise ArchiveError(f"{archive.name}: too large to be a source package")
            yield member
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ArchiveError(f"{archive.name}: {error}") from error


def safe_path(name: str) -> str:
    """Return a member's normalised relative path; raise ArchiveError if it would leave the archive."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ArchiveError(f"unsafe path in archive: {name!r}")
    if path.parts and path.parts[0].endswith(":"):
        raise ArchiveError(f"unsafe path in archive: {name!r}")
    return str(path)


def _read_zip(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as wheel:
        for info in wheel.infolist():
            path = safe_path(info.filename)
            # The upper 16 bits hold the Unix mode: links in a zip are files of that type.
            kind = (info.external_attr >> 16) & 0o170000
            if info.is_dir() or kind not in (0, 0o100000):
                continue
            if info.file_size > MAX_MEMBER_BYTES:
                continue
            with wheel.open(info) as file:
                content = file.read(MAX_MEMBER_BYTES + 1)
            if len(content) <= MAX_MEMBER_BYTES:
                yield Member(path, content)


def _read_tgz(archive: Path) -> Iterator[Member]:
    unpacked = 0
    with tarfile.open(archive, mode="r|gz") as tar:
        for info in tar:
            path = safe_path(info.name)
            unpacked += info.size
            if unpacked > MAX_TAR_BYTES:
                raise ArchiveError(f"{path}: archive unpacks to more than {MAX_TAR_BYTES} bytes")
            if not info.isreg() or info.size > MAX_MEMBER_BYTES:
                continue
            file = tar.extractfile(info)
            if file is not None:
                yield Member(path, file.read())
