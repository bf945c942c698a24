"""Real files to ask about: our own, of every language that we write."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[3]
_PATTERNS: Final = ("*.py", "*.lua", "*.ts", "*.js", "*.css", "*.html", "*.md")
_FOLDERS: Final = ("server", "lsp", "model", "eval", "editors/neovim", "editors/vscode/src", "docs")
_LONGEST: Final = 200_000


def files(each: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Paths with a worktree's name in front, and texts with LF line ends: `each` of a kind, the same at every call."""
    chance = random.Random(seed)
    for pattern in _PATTERNS:
        paths = sorted(path for folder in _FOLDERS for path in (_ROOT / folder).rglob(pattern))
        for path in chance.sample(paths, min(each, len(paths))):
            text = path.read_bytes()[:_LONGEST].decode(errors="ignore").replace("\r\n", "\n").replace("\r", "\n")
            yield f"calomel/{path.relative_to(_ROOT).as_posix()}", text
