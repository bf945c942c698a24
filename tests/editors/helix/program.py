"""The Helix that the tests use, if there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

_HELP = "tests/tools/get-editors fetches one, CALOMEL_HELIX names one"


@cache
def find_helix() -> tuple[Path | None, str]:
    """A Helix, or why there is none."""
    named = os.environ.get("CALOMEL_HELIX")
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    on_path = [Path(path) for path in map(shutil.which, ("hx", "helix")) if path]
    candidates = [Path(named)] if named else [cache_folder / "calomel" / "editors" / "hx", *on_path]
    for candidate in candidates:
        if candidate.exists() and _runs(candidate):
            return candidate, ""
    return None, f"no Helix that runs: {_HELP}"


def _runs(program: Path) -> bool:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return re.match(r"helix \d", said) is not None
