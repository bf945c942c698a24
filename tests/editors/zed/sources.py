"""Real files to ask about: our own, those of installed packages, and those that the infilling bench holds out."""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from calomel.report.heldout import HeldoutFile, read_heldout

_ROOT: Final = Path(__file__).parents[3]
_OWN: Final = ("*.py", "*.lua", "*.ts", "*.js", "*.css", "*.html", "*.md")
_INSTALLED: Final = ("werkzeug/**/*.js", "numpy/**/*.h", "greenlet/*.cpp", "pydantic/*.py", "starlette/*.py")
_FOLDERS: Final = ("server", "lsp", "model", "eval", "editors/neovim", "editors/vscode/src", "docs")
_LONGEST: Final = 200_000


def files(each: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Paths with a worktree's name in front, and texts with LF line ends: `each` of a kind, the same at every call."""
    chance = random.Random(seed)
    for pattern in _OWN:
        own = sorted(path for folder in _FOLDERS for path in (_ROOT / folder).rglob(pattern))
        yield from _some(chance, each, _ROOT, own, "calomel")
    packages = Path(sysconfig.get_path("purelib"))
    for pattern in _INSTALLED:
        yield from _some(chance, each, packages, sorted(packages.glob(pattern)), "site-packages")
    held = _held_out()
    for language in ("go", "rust", "typescript", "python"):
        known = [(f"{file.package}/{file.path}", file.text) for file in held if file.language == language]
        yield from chance.sample(known, each)


@cache
def _held_out() -> tuple[HeldoutFile, ...]:
    return read_heldout()


def _some(chance: random.Random, each: int, root: Path, paths: list[Path], name: str) -> Iterator[tuple[str, str]]:
    for path in chance.sample(paths, min(each, len(paths))):
        text = path.read_bytes()[:_LONGEST].decode(errors="ignore").replace("\r\n", "\n").replace("\r", "\n")
        yield f"{name}/{path.relative_to(root).as_posix()}", text
