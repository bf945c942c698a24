"""What `calomel editor setup` prints, for a machine whose `calomel` is a program of the tests."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calomel.cli.editor_plans import Here


def here(folder: Path, command: Sequence[str]) -> Here:
    """A machine whose user's folder is `folder`, and whose `calomel lsp` starts `command` instead."""
    program = folder / "bin" / "calomel"
    program.parent.mkdir(exist_ok=True)
    # Whatever else an editor says to it is not understood.
    words = f'[ "$1" = lsp ] && shift || exit 64\nexec {shlex.join(command)} "$@"\n'
    program.write_text(f"#!/bin/sh\n{words}", encoding="utf-8")
    program.chmod(0o755)
    return Here(folder, folder / "xdg_config_home", False, str(program), None, None, None)


def outcomes(folder: Path) -> list[dict[str, Any]]:
    """What became of suggestions, as the language server keeps it, oldest first."""
    path = folder / "xdg_state_home" / "calomel" / "outcomes.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def last_outcomes(folder: Path) -> dict[str, str]:
    """The last that is known of each suggestion, by its id."""
    return {each["id"]: each["outcome"] for each in outcomes(folder)}


def is_ready(folder: Path) -> bool:
    """Whether the language server said in its log that the model is there."""
    path = folder / "xdg_state_home" / "calomel" / "lsp.log"
    return path.exists() and " is ready." in path.read_text(encoding="utf-8")
