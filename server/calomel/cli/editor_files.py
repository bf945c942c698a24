"""Settings files of editors: read, changed and written whole or not at all, the former text beside, links followed."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calomel.cli import jsonc
from calomel.cli.errors import CommandError, InputError
from calomel.cli.jsonc import JsoncError, with_values
from calomel.storage import write_whole

_LARGEST: Final = 1024 * 1024
_BACKUP: Final = "{name}.calomel-{number}.bak"
_NEW_MODE: Final = 0o644


@dataclass(frozen=True, slots=True)
class Change:
    """A file, before and after; `before` is None where there is none yet."""

    path: Path
    before: str | None
    after: str

    @property
    def needed(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after

    def diff(self) -> str:
        """The change as a unified diff."""
        name = str(self.path)
        old, new = ("" if self.before is None else self.before), self.after
        lines = difflib.unified_diff(
            old.splitlines(keepends=True),
            new.splitlines(keepends=True),
            "/dev/null" if self.before is None else name,
            name,
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text that is the user's to put somewhere: what, and where."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """For one editor.

    Attributes:
        changes: files that can be written safely.
        snippets: what cannot.
        notes: sentences about what else is to be done.
    """

    changes: tuple[Change, ...] = ()
    snippets: tuple[Snippet, ...] = ()
    notes: tuple[str, ...] = ()


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
