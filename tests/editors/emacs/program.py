"""The Emacs that the tests use, if there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

_HELP = "tests/tools/get-editors fetches one, CALOMEL_EMACS names one"
_OLDEST = 30
# lsp-mode asks for inline completions since its version 10.
_LSP_MODE = '(condition-case nil (progn (require \'lsp-inline-completion) (princ "yes")) (error (princ "no")))'


@cache
def find_emacs() -> tuple[Path | None, str]:
    """An Emacs that is new enough, or why there is none."""
    named = os.environ.get("CALOMEL_EMACS")
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    on_path = shutil.which("emacs")
    candidates = [Path(named)] if named else [cache_folder / "calomel" / "editors" / "emacs"]
    candidates += [Path(on_path)] if on_path and not named else []
    reason = f"no Emacs: {_HELP}"
    for candidate in candidates:
        if candidate.exists():
            version = _says(candidate, "(princ emacs-major-version)")
            if version.isdecimal() and int(version) >= _OLDEST:
                return candidate, ""
            reason = f"{candidate} is older than Emacs {_OLDEST}, or does not run: {_HELP}"
    return None, reason


@cache
def find_lsp_mode() -> str:
    """Why lsp-mode cannot be tried; empty if it can."""
    emacs, reason = find_emacs()
    if emacs is None:
        return reason
    if _says(emacs, _LSP_MODE) != "yes":
        return f"{emacs} has no lsp-mode, or one older than 10, which asks for no inline completions: {_HELP}"
    return ""


def _says(emacs: Path, form: str) -> str:
    try:
        done = subprocess.run(
            [emacs, "-Q", "--batch", "--eval", form], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
