"""The files of a folder that belong into the index: source code that may be read."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from calomel.workspace.index_worker import LONGEST_FILE
from calomel.workspace.languages import GRAMMARS
from calomel.workspace.segment import SourceFile

# Data has no definitions, and its words are not about code.
_DATA: Final = frozenset({"json", "html", "css"})
_OTHER_SUFFIXES: Final = frozenset({
    ".adb", ".ads", ".clj", ".cmake", ".coffee", ".cr", ".dart", ".el", ".elm", ".erl", ".ex", ".exs", ".f90", ".fs",
    ".fsx", ".gd", ".glsl", ".gradle", ".graphql", ".groovy", ".hcl", ".hs", ".hlsl", ".jl", ".kt", ".kts", ".lisp",
    ".lua", ".m", ".ml", ".mli", ".mm", ".nim", ".nix", ".pas", ".php", ".pl", ".pm", ".proto", ".ps1", ".r", ".rkt",
    ".scala", ".scm", ".scss", ".sol", ".sql", ".svelte", ".swift", ".tcl", ".tf", ".thrift", ".v", ".vala", ".vb",
    ".vhd", ".vim", ".vue", ".wgsl", ".zig", ".zsh", ".fish",
})  # fmt: skip
_SUFFIXES: Final = _OTHER_SUFFIXES | {
    suffix for grammar in GRAMMARS if grammar.name not in _DATA for suffix in grammar.suffixes
}
_NAMES: Final = frozenset(
    {"makefile", "gnumakefile", "dockerfile", "cmakelists.txt", "rakefile", "gemfile", "justfile"}
)
# Folders that hold nothing of the user's own; asking the rules about each of their files would take minutes.
PASSED_BY: Final = frozenset({
    ".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache",
    ".ruff_cache", ".pytest_cache", ".cache", ".idea", ".vscode-test", "site-packages", "bower_components",
})  # fmt: skip
# What a folder that is ignored as a whole would be asked for.
_PROBES: Final = ("_.py", "_.ts", "_.c", "_")
_DEEPEST: Final = 40


class Allowed(Protocol):
    """The answer about one file."""

    @property
    def allowed(self) -> bool:
        """Whether its text may be read and shown to a model."""


class Permission(Protocol):
    """What is needed here of `calomel.workspace.privacy.Privacy`; asked from several threads."""

    def allowed(self, path: Path) -> Allowed:
        """Whether the file may be read, and why not."""


class Seen(NamedTuple):
    """A file of the walk, with what tells whether it has changed since."""

    file: SourceFile
    modified: int
    size: int


def is_source(path: Path) -> bool:
    """Whether the name is one of source code."""
    return path.suffix.lower() in _SUFFIXES or path.name.lower() in _NAMES


def see(path: Path, folders: Sequence[Path], permission: Permission | None) -> Seen | None:
    """The file as the index takes it; None when it is none of its files, or gone.

    Links are not followed: what they lead to is found where it is, or is none of the folder's.
    """
    if not is_source(path):
        return None
    inside = [folder for folder in folders if path.is_relative_to(folder)]
    try:
        state = path.lstat()
    except OSError:
        return None
    regular = stat.S_ISREG(state.st_mode)
    if not inside or not regular or not 0 < state.st_size <= LONGEST_FILE:
        return None
    if any(part in PASSED_BY for part in path.relative_to(inside[0]).parts):
        return None
    if permission is not None and not permission.allowed(path).allowed:
        return None
    folder = max(inside, key=lambda each: len(each.parts))
    name = path.relative_to(folder).as_posix()
    return Seen(SourceFile(str(path), name), state.st_mtime_ns, state.st_size)


def walk(
    top: Path, folders: Sequence[Path], permission: Permission | None, breathe: Callable[[], bool]
) -> Iterator[Seen]:
    """All files at and below `top`, those near the top first, in the order of their names.

    `breathe` is called for every entry: it may wait, and ends the walk by saying no.
    """
    left = deque([(top, 0)])
    while left:
        folder, depth = left.popleft()
        try:
            with os.scandir(folder) as entries:
                found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError:
            continue
        for name, is_folder in found:
            if not breathe():
                return
            path = folder / name
            if not is_folder:
                seen = see(path, folders, permission)
                if seen is not None:
                    yield seen
            elif name not in PASSED_BY and depth < _DEEPEST and can_hold(path, permission):
                left.append((path, depth + 1))


def can_hold(folder: Path, permission: Permission | None) -> bool:
    """Whether a folder can hold a file that may be read."""
    return permission is None or any(permission.allowed(folder / probe).allowed for probe in _PROBES)
