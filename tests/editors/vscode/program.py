"""The VS Code that the tests use, if there is one."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
EXTENSION = REPOSITORY / "editors" / "vscode"


@dataclass(frozen=True, slots=True)
class Programs:
    """What drives a real workbench.

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
    """Where they are, or why they are not."""
    named = os.environ.get("CALOMEL_VSCODE")
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(named) if named else cache_folder / "calomel" / "vscode"
    chromium = next((path for path in map(shutil.which, ("chromium", "chromium-browser")) if path), None)
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


@cache
def find_npm() -> str:
    """Why what is written in TypeScript can not be checked here; empty if it can."""
    if shutil.which("node") is None:
        return "no node: the extension for VS Code can not be checked"
    if not (EXTENSION / "node_modules" / "esbuild").exists():
        return "editors/vscode/node_modules is not there: `make vsix` installs it"
    return ""
