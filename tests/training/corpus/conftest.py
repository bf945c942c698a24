"""Synthetic archives in both formats, and a registry that hands them out."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from calomel.training.corpus.build import CorpusConfig
from calomel.training.corpus.packages import FetchError


def tar_bytes(files: dict[str, str], links: dict[str, str] | None = None) -> bytes:
    """A tar of `files`, and of symbolic `links` from name to target."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return raw.getvalue()


def make_wheel(path: Path, files: dict[str, str], license_: str = "MIT") -> Path:
    """A wheel whose METADATA has `license_` as its License-Expression."""
    metadata = f"Metadata-Version: 2.4\nName: x\nVersion: 1\nLicense-Expression: {license_}\n"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("x-1.dist-info/METADATA", metadata)
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


def make_tgz(path: Path, files: dict[str, str], license_: object = "MIT") -> Path:
    """An npm tarball whose package.json has `license_`."""
    manifest = {"package/package.json": json.dumps({"name": "x", "license": license_})}
    path.write_bytes(gzip.compress(tar_bytes(manifest | {f"package/{k}": v for k, v in files.items()})))
    return path


def python_source(name: str, functions: int = 6) -> str:
    """Python text that shares no telling line with another name's."""
    return "".join(
        f"def {name}_step_{i}(value, limit):\n"
        f"    total_{name}_{i} = value * {name}_{i} + limit\n"
        f"    return clamp_{name}(total_{name}_{i}, limit)\n\n\n"
        for i in range(functions)
    )


class Registry:
    """Stands in for pip and npm: copies the archive made for a pinned name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archives: dict[str, Path] = {}
        self.entries: list[str] = []
        self.downloads: list[str] = []

    def wheel(self, name: str, files: dict[str, str], license_: str = "MIT") -> None:
        self._add("pypi", name, make_wheel(self.folder / f"{name}-1.whl", files, license_), f"{name}==1")

    def tgz(self, name: str, files: dict[str, str], license_: object = "MIT") -> None:
        self._add("npm", name, make_tgz(self.folder / f"{name}-1.tgz", files, license_), f"{name}@1")

    def _add(self, ecosystem: str, name: str, archive: Path, pinned: str) -> None:
        self.archives[pinned] = archive
        self.entries.append(f'[[package]]\necosystem = "{ecosystem}"\nname = "{name}"\nversion = "1"\n')

    def missing(self, name: str) -> None:
        self.entries.append(f'[[package]]\necosystem = "pypi"\nname = "{name}"\nversion = "1"\n')

    def run(self, command: list[str], landing: Path) -> None:
        pinned = command[-1]
        self.downloads.append(pinned)
        if pinned not in self.archives:
            raise FetchError(f"{pinned}: no such package")
        source = self.archives[pinned]
        (landing / source.name).write_bytes(source.read_bytes())


@pytest.fixture
def source() -> Callable[..., str]:
    return python_source


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    folder = tmp_path / "registry"
    folder.mkdir()
    made = Registry(folder)
    monkeypatch.setattr("calomel.training.corpus.packages.run_client", made.run)
    return made


@pytest.fixture
def config(tmp_path: Path, registry: Registry) -> Callable[..., CorpusConfig]:
    def make(**changes: object) -> CorpusConfig:
        packages = tmp_path / "packages.toml"
        packages.write_text("\n".join(registry.entries))
        data = tmp_path / "data"
        data.mkdir(exist_ok=True)
        places = {"out": tmp_path / "out", "cache": tmp_path / "cache", "data": data}
        settings = places | {"packages": packages, "repositories": None, "lock": tmp_path / "lock.json"} | changes
        return CorpusConfig(**settings)  # type: ignore[arg-type]

    return make
