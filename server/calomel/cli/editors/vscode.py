"""VS Code and its relatives: the extension starts `calomel lsp` itself, and must find it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from calomel.cli.editors.here import Here
from calomel.cli.editors.plan import Plan
from calomel.cli.editors.settings_file import merged

# Folder of the settings, the program's command, and the folder of its extensions.
_RELATIVES: Final = {
    "Code": ("code", ".vscode"),
    "Code - Insiders": ("code-insiders", ".vscode-insiders"),
    "VSCodium": ("codium", ".vscode-oss"),
    "Cursor": ("cursor", ".cursor"),
}


def plan(here: Here, file: Path | None = None) -> Plan:
    """The program's place in the settings of each relative that is here; of VS Code in any case. Raises InputError."""
    found = [name for name in _RELATIVES if (here.support / name).is_dir()] or ["Code"]
    paths = [file] if file is not None else [here.support / name / "User" / "settings.json" for name in found]
    # Editors that are started from a menu have another PATH than a shell.
    changes = tuple(merged(path, {"calomel.path": here.program}, "    ") for path in paths)
    missing = [command for command, folder in map(_RELATIVES.__getitem__, found) if not _has_extension(here, folder)]
    if not missing:
        return Plan(changes)
    commands = "\n".join(f"    {command} --install-extension dist/calomel.vsix" for command in missing)
    return Plan(changes, (), (f"The extension: make vsix in a source checkout, then\n{commands}",))


def _has_extension(here: Here, folder: str) -> bool:
    return any((here.home / folder / "extensions").glob("calomel.calomel-*/package.json"))
