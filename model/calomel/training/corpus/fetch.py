"""Fetches pinned archives one after another, through each registry's own client, into a cache.

Nothing is enumerated and no package code runs: wheels only, no dependencies, no npm scripts, and
Debian archives are never installed.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from calomel.training.corpus.errors import FetchError
from calomel.training.corpus.packages import Ecosystem, Package

DEFAULT_LOCK = Path(__file__).with_name("packages.lock.json")
DEFAULT_CACHE = Path("~/.cache/calomel/corpus")

# Seconds one download may take before it counts as failed.
DOWNLOAD_TIMEOUT = 600

# One fixed target, so that every machine downloads (and hashes) the same wheel.
_WHEEL_TARGET = (
    *("--python-version", "3.13", "--implementation", "cp"),
    *("--abi", "cp313", "--abi", "abi3", "--abi", "none"),
    *("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_17_x86_64"),
    *("--platform", "manylinux2014_x86_64", "--platform", "any"),
)

Runner = Callable[[list[str], Path], None]
"""Runs a command in a folder; raises FetchError when it fails."""


@dataclass(frozen=True, slots=True)
class Archive:
    """One downloaded archive whose bytes are the ones that the lock file names."""

    package: Package
    path: Path
    sha256: str


class ArchiveCache:
    """Archives on disk, and the lock file that says which bytes each package must have."""

    def __init__(self, folder: Path, lock: Path, *, run: Runner | None = None) -> None:
        """Keep archives under `folder`; read `lock` now, extend it as packages are added."""
        self._folder = folder.expanduser()
        self._lock = lock
        self._run = run or run_client
        self._entries: dict[str, dict[str, str]] = {}
        if lock.exists():
            self._entries = json.loads(lock.read_text(encoding="utf-8"))

    def fetch(self, package: Package) -> Archive:
        """Return the package's archive, downloading it only when the cache lacks it.

        Raises FetchError when the client fails, or the bytes differ from the locked ones.
        """
        entry = self._entries.get(package.key)
        shelf = self._folder / package.ecosystem
        shelf.mkdir(parents=True, exist_ok=True)
        if entry and (path := shelf / Path(entry["file"]).name).exists():
            return self._verified(package, path, entry["sha256"])
        with tempfile.TemporaryDirectory(dir=self._folder, prefix="download-") as landing:
            self._run(download_command(package), Path(landing))
            files = [path for path in Path(landing).iterdir() if path.is_file()]
            if len(files) != 1:
                raise FetchError(f"{package.key}: expected one archive, got {len(files)}")
            sha256 = _sha256(files[0])
            if entry and entry["sha256"] != sha256:
                raise FetchError(f"{package.key}: the lock file has {entry['sha256']}, not {sha256}")
            path = shelf / files[0].name
            shutil.move(files[0], path)
        self._record(package, path.name, sha256)
        return Archive(package, path, sha256)

    def _verified(self, package: Package, path: Path, expected: str) -> Archive:
        sha256 = _sha256(path)
        if sha256 != expected:
            raise FetchError(f"{package.key}: cached {path.name} is {sha256}, not {expected}")
        return Archive(package, path, sha256)

    def _record(self, package: Package, file: str, sha256: str) -> None:
        if package.key in self._entries:
            return
        self._entries[package.key] = {"file": file, "sha256": sha256}
        text = json.dumps(dict(sorted(self._entries.items())), indent=1) + "\n"
        partial = self._lock.with_name(self._lock.name + ".partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(self._lock)


def download_command(package: Package) -> list[str]:
    """Return the registry client's command that leaves exactly one archive in its folder."""
    pinned = {
        Ecosystem.PYPI: f"{package.name}=={package.version}",
        Ecosystem.NPM: f"{package.name}@{package.version}",
        Ecosystem.DEBIAN: f"{package.name}={package.version}",
    }[package.ecosystem]
    match package.ecosystem:
        case Ecosystem.PYPI:
            client = [sys.executable, "-m", "pip", "download", "--no-deps"]
            return [*client, "--only-binary=:all:", *_WHEEL_TARGET, "-d", ".", pinned]
        case Ecosystem.NPM:
            return ["npm", "pack", "--ignore-scripts", pinned]
        case Ecosystem.DEBIAN:
            return ["apt-get", "download", pinned]


def run_client(command: list[str], folder: Path) -> None:
    """Run one registry client in `folder`; raise FetchError with its last words if it fails."""
    try:
        subprocess.run(  # noqa: S603 - a list, no shell; names and versions are checked as they are read
            command,
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_TIMEOUT,
        )
    except FileNotFoundError as error:
        raise FetchError(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise FetchError(f"{command[-1]}: no answer in {DOWNLOAD_TIMEOUT} s") from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip() or "no message").splitlines()[-1]
        raise FetchError(f"{command[-1]}: {last}") from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
