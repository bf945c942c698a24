"""Where sources come from: a registry of packages, and a host of repositories that git clones from a folder."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from calomel.training.corpus.packages import FetchError

MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software\n"
GPL = "GNU GENERAL PUBLIC LICENSE\nVersion 3\n"


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
        """A wheel whose METADATA has `license_` as its License-Expression."""
        metadata = f"Metadata-Version: 2.4\nName: x\nVersion: 1\nLicense-Expression: {license_}\n"
        path = self.folder / f"{name}-1.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            for inside, text in {"x-1.dist-info/METADATA": metadata, **files}.items():
                wheel.writestr(inside, text)
        self._add("pypi", name, path, f"{name}==1")

    def tgz(self, name: str, files: dict[str, str], license_: object = "MIT") -> None:
        """An npm tarball whose package.json has `license_`."""
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w") as tar:
            for inside, text in {"package.json": json.dumps({"name": "x", "license": license_}), **files}.items():
                info = tarfile.TarInfo(f"package/{inside}")
                info.size = len(text.encode())
                tar.addfile(info, io.BytesIO(text.encode()))
        path = self.folder / f"{name}-1.tgz"
        path.write_bytes(gzip.compress(raw.getvalue()))
        self._add("npm", name, path, f"{name}@1")

    def _add(self, ecosystem: str, name: str, archive: Path, pinned: str) -> None:
        self.archives[pinned] = archive
        self.entries.append(f'[[package]]\necosystem = "{ecosystem}"\nname = "{name}"\nversion = "1"\n')

    def run(self, command: list[str], landing: Path) -> None:
        pinned = command[-1]
        self.downloads.append(pinned)
        if pinned not in self.archives:
            raise FetchError(f"{pinned}: no such package")
        source = self.archives[pinned]
        (landing / source.name).write_bytes(source.read_bytes())


class Commits:
    """A repository that commits whole files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, subject: str, files: Mapping[str, str | bytes | None], author: str = "A") -> str:
        """Write files, delete those that are None, and return the commit."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", f"--author={author} <a@b>", "-m", subject)
        return self.git("rev-parse", "HEAD")


class Forge:
    """Stands in for the host of repositories, `https://example.com/`, and has the list of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.list = folder / "repositories.toml"
        self.list.write_text("")
        self.config = folder / "gitconfig"
        self.config.write_text(f'[url "{folder}/"]\n\tinsteadOf = https://example.com/\n')
        self.repositories: dict[str, Commits] = {}

    def commit(self, name: str, files: dict[str, str]) -> str:
        """Add files to a repository, which is made where it is missing, and return the commit."""
        if name not in self.repositories:
            self.repositories[name] = Commits(self.folder / f"{name}.git")
        return self.repositories[name].commit("Change files", files)

    def entry(self, name: str, commit: str, license_: str = "MIT", *, held_out: bool = False) -> None:
        """List a repository at a commit."""
        entry = f'[[repository]]\nurl = "https://example.com/{name}.git"\ncommit = "{commit}"\nlicense = "{license_}"\n'
        self.list.write_text(self.list.read_text() + entry + ("held_out = true\n" if held_out else ""))
