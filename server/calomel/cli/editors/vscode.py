"""VS Code and its relatives: the extension starts `calomel lsp` itself, and must find it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from calomel.cli.editors.here import Here
from calomel.cli.editors.plan import Plan
from calomel.cli.editors.settings_file import merged

# Folder of the settings, and the program's command.
_RELATIVES: Final = {
    "Code": "code",
    "Code - Insiders": "code-insiders",
    "VSCodium": "codium",
    "Cursor": "cursor",
}


def plan(here: Here, file: Path | None = None) -> Plan:
    """The program's place in the settings of each relative that is here; of VS Code in any case. Raises InputError."""
    found = [name for name in _RELATIVES if (here.support / name).is_dir()] or ["Code"]
    paths = [file] if file is not None else [here.support / name / "User" / "settings.json" for name in found]
    # Editors that are started from a menu have another PATH than a shell.
    changes = tuple(merged(path, {"calomel.path": here.program}, "    ") for path in paths)
    commands = "\n".join(f"    {_RELATIVES[name]} --install-extension dist/calomel.vsix" for name in found)
    return Plan(changes, (), (f"The extension: make vsix in a source checkout, then\n{commands}",))
