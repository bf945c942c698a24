"""The recording that comes with Calomel: somebody works on three small files. It was made for this."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from calomel.cli.errors import InputError

if TYPE_CHECKING:
    from calomel.replay.events import ReplayLog

_NAME = "inventory.recording.json"


def open_log(path: Path | None) -> ReplayLog:
    """The log at `path`; None for the bundled one. Raises InputError when nothing of it can be read."""
    from calomel.replay.events import LogError
    from calomel.replay.logs import read_logs

    try:
        if path is None:
            with as_file(files("calomel.cli").joinpath("stage", "recordings", _NAME)) as bundled:
                return read_logs(bundled)[0]
        found = read_logs(path)
    except LogError as error:
        raise InputError(str(error)) from error
    if not found:
        raise InputError(f"{path} holds no log")
    return found[0]
