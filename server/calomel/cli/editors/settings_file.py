"""A change of a settings file in JSON with comments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calomel.cli.checks import jsonc
from calomel.cli.editors.files import read
from calomel.cli.editors.jsonc_edit import with_values
from calomel.cli.editors.jsonc_tree import JsoncError
from calomel.cli.editors.plan import Change
from calomel.cli.errors import InputError


def merged(path: Path, values: Mapping[str, Any], unit: str) -> Change:
    """The file with these values in it, everything else as it was.

    Raises:
        InputError: it cannot be read as JSON with comments, so nothing is touched.
    """
    before = read(path)
    try:
        after = with_values(before or "", values, unit)
        ours = jsonc.loads(after)
    except (JsoncError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be changed safely ({error}): mend it in the editor, then run this") from error
    if not _holds(ours, values):
        raise InputError(f"{path} cannot be changed safely: put these settings into it yourself")
    return Change(path, before, after)


def value(path: Path, *keys: str) -> Any:
    """What a settings file says now; None when it says nothing."""
    try:
        found = jsonc.loads(read(path) or "{}")
    except (ValueError, RecursionError):
        return None
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _holds(found: Any, values: Mapping[str, Any]) -> bool:
    return isinstance(found, dict) and all(
        _holds(found.get(key), wanted) if isinstance(wanted, Mapping) and wanted else found.get(key) == wanted
        for key, wanted in values.items()
    )
