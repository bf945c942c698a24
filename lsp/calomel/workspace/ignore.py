"""Files that are not worth a model's while: generated, minified, huge, binary; and those that the user names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from pathlib import Path
from typing import Final, NamedTuple

from pathspec import GitIgnoreSpec

from calomel.workspace.gitignore import is_pattern

# Written by programs.
GENERATED_FILES: Final = (
    "*.min.js", "*.min.css", "*.min.mjs", "*.bundle.js", "*.map", "*-lock.json", "*.lock", "*.lockb", "go.sum", "*.sum",
    "pnpm-lock.yaml", "*.pb.go", "*.pb.h", "*.pb.cc", "*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*.g.dart",
    "*.designer.cs", "*.generated.*", "*.snap", "*.csv", "*.tsv", "*.jsonl", "*.ndjson", "*.log", "*.svg",
)  # fmt: skip
GENERATED_FOLDERS: Final = frozenset({
    ".git", ".hg", ".svn", ".jj", "node_modules", "bower_components", "__pycache__", ".venv", "venv", ".tox", ".nox",
    ".mypy_cache", ".ruff_cache", ".pytest_cache", ".next", ".nuxt", ".terraform", ".gradle", ".eggs", ".cache",
})  # fmt: skip
# No text.
BINARY_FILES: Final = (
    "*.zip", "*.gz", "*.xz", "*.zst", "*.bz2", "*.tar", "*.tgz", "*.7z", "*.rar", "*.whl", "*.jar", "*.war", "*.class",
    "*.pyc", "*.pyd", "*.so", "*.dylib", "*.dll", "*.exe", "*.o", "*.a", "*.lib", "*.obj", "*.wasm", "*.bin", "*.dat",
    "*.png", "*.jpg", "*.jpeg", "*.gif", "*.webp", "*.bmp", "*.tiff", "*.ico", "*.icns", "*.pdf", "*.ttf", "*.otf",
    "*.woff", "*.woff2", "*.mp3", "*.mp4", "*.wav", "*.ogg", "*.webm", "*.mov", "*.sqlite", "*.sqlite3", "*.db",
    "*.parquet", "*.npy", "*.npz", "*.pkl", "*.pt", "*.pth", "*.onnx", "*.safetensors", "*.gguf", "*.h5",
)  # fmt: skip

# About 30,000 lines: whoever reads such a file does so with a program.
MAX_BYTES: Final = 1_000_000
# What is looked at of a file on disk.
SNIFFED_BYTES: Final = 8_192
# Means of a line that no person wrote (the largest open next-edit client stops at 240).
_LONG_MEAN: Final = 240
# The sentence is Go's, the first word Phabricator's; both are in wide use. Near the top, where tools put them.
_MARKED: Final = re.compile(
    r"@generated\b|<auto-?generated|"
    r"(?:code|file|is|was|been)[ \t]+(?:automatically |auto-?)?generated\b.{0,80}\b(?:do not|don't) (?:edit|modify)|"
    r"(?:do not|don't) (?:edit|modify).{0,80}\b(?:automatically |auto-?)generated",
    re.IGNORECASE | re.DOTALL,
)
_HEAD: Final = 1_000


class UserPattern(NamedTuple):
    """What the user's patterns say of a file: the last one that matches it."""

    excluded: bool
    pattern: str


class UserPatterns:
    """Patterns as in .gitignore; a later one decides over an earlier one, and `!` lets in again what any rule keeps."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [pattern for pattern in patterns if is_pattern(pattern)]
        self._spec = GitIgnoreSpec.from_lines(self._patterns)

    def find(self, path: str) -> UserPattern | None:
        """What they say of a path with forward slashes; None when they say nothing."""
        if not self._patterns:
            return None
        found = self._spec.check_file(path)
        if found.include is None or found.index is None:
            return None
        return UserPattern(found.include, self._patterns[found.index])


def generated_by_name(path: Path, folder: Path | None) -> str | None:
    """Why a file is not worth reading by its name, such as `generated:*.lock`; None when it is.

    Args:
        path: absolute.
        folder: of the workspace, in which it lies: only what is below it counts.
    """
    below = path.parts[:-1] if folder is None else path.relative_to(folder).parts[:-1]
    place = next((part for part in below if part in GENERATED_FOLDERS), None)
    if place is not None:
        return f"generated:{place}/"
    found = _BY_NAME.fullmatch(path.name.lower())
    if found is None or found.lastindex is None:
        return None
    number = found.lastindex - 1
    if number < len(GENERATED_FILES):
        return f"generated:{GENERATED_FILES[number]}"
    return f"binary:{BINARY_FILES[number - len(GENERATED_FILES)]}"


def content_refusal(text: str) -> str | None:
    """Why a text is not worth reading: `too_large`, `binary`, `generated` or `minified`; None when it is."""
    if len(text) > MAX_BYTES:
        return "too_large"
    head = text[:_HEAD]
    if "\0" in head:
        return "binary"
    if _MARKED.search(head):
        return "generated"
    lines = text.count("\n") + 1
    return "minified" if len(text) > _LONG_MEAN * 4 and len(text) / lines > _LONG_MEAN else None


_BY_NAME: Final = re.compile("|".join(f"({translate(pattern)})" for pattern in (*GENERATED_FILES, *BINARY_FILES)))
