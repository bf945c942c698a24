"""A refactoring library: what can be renamed in a file, and what the file is after it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

KINDS = ("parameter", "local", "definition", "member")


class Name(NamedTuple):
    """A name that a file declares: its kind, where, and itself."""

    kind: str
    start: int
    old: str


class LibraryError(Exception):
    """It cannot rename this, for a reason of its own."""


class Library(Protocol):
    """One language's."""

    @property
    def root(self) -> Path:
        """The folder of packages that files are drawn from."""

    def files(self) -> Sequence[Path]:
        """Files to draw from, in a fixed order."""

    def names(self, path: Path, text: str) -> Sequence[Name]:
        """What the file declares, at its declaration. Raises LibraryError where the file is none of the language."""

    def renamed(self, path: Path, text: str, name: Name, new: str) -> str:
        """The file after a rename. Raises LibraryError."""

    def unknown(self, path: Path, text: str) -> frozenset[str]:
        """Names that the file uses and nothing declares. Raises LibraryError where it does not parse."""

    def close(self) -> None:
        """End what it runs."""


def by_package(files: Sequence[Path], root: Path) -> Iterator[list[Path]]:
    """The files of each package, so that a large one counts as one."""
    found: dict[str, list[Path]] = {}
    for file in files:
        first, *rest = file.relative_to(root).parts
        found.setdefault(f"{first}/{rest[0]}" if first.startswith("@") else first, []).append(file)
    yield from found.values()
