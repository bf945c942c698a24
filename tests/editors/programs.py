"""The editors that the tests use, or why there are none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
EXTENSION = REPOSITORY / "editors" / "vscode"
_OLDEST_NEOVIM = (0, 11)
_OLDEST_EMACS = 30
_EDITORS = "tests/tools/get-editors fetches one"
# lsp-mode asks for inline completions since its version 10.
_LSP_MODE = '(condition-case nil (progn (require \'lsp-inline-completion) (princ "yes")) (error (princ "no")))'


_Found = TypeVar("_Found")


def wanted(found: tuple[_Found | None, str]) -> _Found:
    """What was found; without it the test is skipped."""
    program, reason = found
    if program is None:
        pytest.skip(reason)
    return program


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "calomel"


@cache
def _says(program: Path, *arguments: str) -> str:
    """What it prints; nothing if it does not run."""
    try:
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _find(
    variable: str, cached: str, names: tuple[str, ...], trouble: Callable[[Path], str], absent: str
) -> tuple[Path | None, str]:
    """The one that the variable names; else the one that was fetched, or that is on the path."""
    named = os.environ.get(variable)
    on_path = [Path(path) for path in map(shutil.which, names) if path]
    reason = f"{absent}, {variable} names one"
    for place in [Path(named)] if named else [_folder() / cached, *on_path]:
        if named or place.exists():
            reason = trouble(place)
            if not reason:
                return place, ""
    return None, reason


def find_neovim() -> tuple[Path | None, str]:
    """A Neovim that is new enough, or why there is none."""

    def trouble(program: Path) -> str:
        found = re.match(r"NVIM v(\d+)\.(\d+)", _says(program, "--version"))
        if found is None:
            return f"{program} does not run"
        return f"{program} is older than 0.11" if (int(found[1]), int(found[2])) < _OLDEST_NEOVIM else ""

    absent = "no Neovim: tests/tools/get-neovim fetches one"
    return _find("CALOMEL_NVIM", "neovim/nvim", ("nvim",), trouble, absent)


def find_helix() -> tuple[Path | None, str]:
    """A Helix, or why there is none."""

    def trouble(program: Path) -> str:
        return "" if re.match(r"helix \d", _says(program, "--version")) else f"{program} does not run"

    return _find("CALOMEL_HELIX", "editors/hx", ("hx", "helix"), trouble, f"no Helix: {_EDITORS}")


def find_emacs(*, lsp_mode: bool = False) -> tuple[Path | None, str]:
    """An Emacs that is new enough, or has an lsp-mode that is; or why there is none."""

    def trouble(program: Path) -> str:
        version = _says(program, "-Q", "--batch", "--eval", "(princ emacs-major-version)")
        if not version.isdecimal() or int(version) < _OLDEST_EMACS:
            return f"{program} is older than Emacs {_OLDEST_EMACS}, or does not run: {_EDITORS}"
        if lsp_mode and _says(program, "-Q", "--batch", "--eval", _LSP_MODE) != "yes":
            return f"{program} has no lsp-mode, or one older than 10, which asks for no inline completions: {_EDITORS}"
        return ""

    return _find("CALOMEL_EMACS", "editors/emacs", ("emacs",), trouble, f"no Emacs: {_EDITORS}")


@dataclass(frozen=True, slots=True)
class Programs:
    """What drives a real VS Code.

    Attributes:
        node: a Node that is new enough for the workbench.
        code_server: the workbench.
        playwright: the folder in which playwright-core is installed.
        chromium: the browser.
    """

    node: Path
    code_server: Path
    playwright: Path
    chromium: Path


@cache
def find_programs() -> tuple[Programs | None, str]:
    """Those of VS Code, or why they are not there."""
    named = os.environ.get("CALOMEL_VSCODE")
    folder = Path(named) if named else _folder() / "vscode"
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    found = Programs(
        folder / "node" / "bin" / "node",
        folder / "cs" / "node_modules" / ".bin" / "code-server",
        folder / "pw",
        Path(chromium or "chromium"),
    )
    for path in (found.node, found.code_server, found.playwright / "node_modules" / "playwright-core"):
        if not path.exists():
            return None, f"no {path}: tests/tools/get-vscode installs a VS Code, CALOMEL_VSCODE names its folder"
    if chromium is None:
        return None, "no chromium: tests/tools/get-vscode installs it"
    return found, ""


def find_npm() -> tuple[str | None, str]:
    """What checks the extension's TypeScript, or why it can not be checked here."""
    if shutil.which("node") is None:
        return None, "no node: the extension for VS Code can not be checked"
    if not (EXTENSION / "node_modules" / "esbuild").exists():
        return None, "editors/vscode/node_modules is not there: `make vsix` installs it"
    return shutil.which("npm"), "no npm"
