"""Reads and writes settings of editors: whole or not at all, with the former text beside, links followed."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Final

from calomel.cli.editors.plan import Change
from calomel.cli.errors import CommandError, InputError
from calomel.storage import write_whole

_LARGEST: Final = 1024 * 1024
_BACKUP: Final = "{name}.calomel-{number}.bak"
_NEW_MODE: Final = 0o644


def read(path: Path) -> str | None:
    """The text with its own line ends; None when there is no such file. Raises InputError."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from error
    if len(data) > _LARGEST:
        raise InputError(f"{path} is larger than {_LARGEST // 1024} KB, which no settings file is")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8") from error


def write(change: Change) -> Path | None:
    """Write a change; the backup, or None where there was no file before.

    Raises:
        CommandError: the file is another than the one that was shown, or cannot be written.
    """
    # A link stays one: what it leads to is written.
    target = Path(os.path.realpath(change.path))
    if read(target) != change.before:
        raise CommandError(f"{change.path} was changed meanwhile; run this again")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # An empty backup says that there was nothing.
        backup = _free(target)
        _put(backup, change.before or "", target)
        _put(target, change.after, target)
    except OSError as error:
        raise CommandError(f"{target} cannot be written ({error.strerror})") from error
    return None if change.before is None else backup


def undone(path: Path) -> tuple[Change, Path] | None:
    """The change that takes back the last one, and its backup; None when there is none. `after` may be empty."""
    target = Path(os.path.realpath(path))
    backups = _backups(target)
    if not backups:
        return None
    return Change(path, read(target), read(backups[-1]) or ""), backups[-1]


def undo(change: Change, backup: Path) -> None:
    """Take a change back. Raises CommandError."""
    target = Path(os.path.realpath(change.path))
    try:
        if change.after:
            _put(target, change.after, target)
        else:
            target.unlink(missing_ok=True)
        backup.unlink()
    except OSError as error:
        raise CommandError(f"{target} cannot be written ({error.strerror})") from error


def _backups(target: Path) -> list[Path]:
    shape = re.compile(re.escape(_BACKUP).replace(r"\{name\}", re.escape(target.name)).replace(r"\{number\}", r"(\d+)"))
    found = []
    with contextlib.suppress(OSError):
        found = [(int(match[1]), each) for each in target.parent.iterdir() if (match := shape.fullmatch(each.name))]
    return [each for _, each in sorted(found)]


def _free(target: Path) -> Path:
    number = 1
    while (path := target.with_name(_BACKUP.format(name=target.name, number=number))).exists():
        number += 1
    return path


def _put(path: Path, text: str, like: Path) -> None:
    """Write a file whole or not at all, with the rights of another."""
    mode = like.stat().st_mode & 0o777 if like.exists() else _NEW_MODE
    write_whole(path, text, mode=mode)
