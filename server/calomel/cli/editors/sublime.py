"""Sublime Text, with its package LSP."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from calomel.cli.editors.here import Here
from calomel.cli.editors.plan import Plan
from calomel.cli.editors.settings_file import merged

_FOLDERS: Final = {True: "Sublime Text", False: "sublime-text"}


def plan(here: Here, file: Path | None = None) -> Plan:
    """A client of the package LSP, which shows text for the cursor among the completions. Raises InputError."""
    packages = here.support / _FOLDERS[here.mac] / "Packages"
    path = file or packages / "User" / "LSP.sublime-settings"
    client = {
        "enabled": True,
        "command": [here.program, "lsp"],
        "selector": "source | text",
        "initializationOptions": {"completion_item": True},
    }
    notes = (
        "Install the package LSP first (Package Control: Install Package, LSP).",
        "Sublime Text shows no ghost text of language servers: suggestions are completions.",
        'Next edits are the code action "Apply predicted edit".',
    )
    return Plan((merged(path, {"clients": {"calomel": client}}, "\t"),), (), notes)
