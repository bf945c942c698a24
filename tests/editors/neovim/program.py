"""The Neovim that the tests use, if there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

OLDEST = (0, 11)


@cache
def find_neovim() -> tuple[Path | None, str]:
    """A Neovim that is new enough, or why there is none."""
    named = os.environ.get("CALOMEL_NVIM")
    if named:
        return _checked(Path(named))
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    fetched = cache_folder / "calomel" / "neovim" / "nvim"
    on_path = shutil.which("nvim")
    reason = "no Neovim: tests/tools/get-neovim fetches one, CALOMEL_NVIM names one"
    for candidate in (fetched, None if on_path is None else Path(on_path)):
        if candidate is not None and candidate.exists():
            found, reason = _checked(candidate)
            if found is not None:
                return found, ""
    return None, reason


def _checked(program: Path) -> tuple[Path | None, str]:
    version = version_of(program)
    if version is None:
        return None, f"{program} does not run"
    if version < OLDEST:
        return None, f"{program} is older than 0.11"
    return program, ""


@cache
def version_of(program: Path) -> tuple[int, int] | None:
    """Its version; None if it is no Neovim that runs here."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.match(r"NVIM v(\d+)\.(\d+)", said)
    return None if found is None else (int(found[1]), int(found[2]))
