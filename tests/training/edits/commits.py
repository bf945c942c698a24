"""A tiny git repository."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Commits:
    """A repository that commits whole files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> None:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *arguments], cwd=self.folder, check=True, capture_output=True)

    def commit(self, subject: str, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject)

    def head(self) -> str:
        """The newest commit."""
        shown = subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.folder, check=True, capture_output=True)
        return shown.stdout.decode().strip()
