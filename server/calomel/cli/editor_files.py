"""Settings files of editors: read, changed and written atomically, with a backup beside them, following links."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calomel.cli.errors import CommandError, InputError
from calomel.cli.jsonc import loads, with_values
from calomel.storage import write_whole

_LARGEST: Final = 1024 * 1024
_BACKUP: Final = re.compile(r"(.*)\.calomel-(\d+)\.bak")
_NEW_MODE: Final = 0o644


@dataclass(frozen=True, slots=True)
class Change:
    """A file, before and after; `before` is None if it does not exist yet."""

    path: Path
    before: str | None
    after: str

    @property
    def needed(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after

    def diff(self) -> str:
        """The change as a unified diff."""
        name = "/dev/null" if self.before is None else str(self.path)
        old, new = (self.before or "").splitlines(keepends=True), self.after.splitlines(keepends=True)
        lines = difflib.unified_diff(old, new, name, str(self.path))
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text that the user has to put somewhere: what, and where."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes for one editor.

    Attributes:
        changes: files that can be written safely.
        snippets: text that cannot be written safely.
        notes: sentences about further steps.
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
        raise InputError(f"{path} is larger than {_LARGEST // 1024} KB, too large for a settings file")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8") from error


def write(change: Change) -> Path | None:
    """Write a change; returns the backup, or None if the file did not exist. Raises CommandError, OSError."""
    # A link stays a link: its target is written.
    target = Path(os.path.realpath(change.path))
    if read(target) != change.before:
        raise CommandError(f"{change.path} changed meanwhile; run this again")
    target.parent.mkdir(parents=True, exist_ok=True)
    backup = target.with_name(f"{target.name}.calomel-{max(_backups(target), default=0) + 1}.bak")
    mode = target.stat().st_mode & 0o777 if target.exists() else _NEW_MODE
    # An empty backup means that the file did not exist.
    write_whole(backup, change.before or "", mode=mode)
    write_whole(target, change.after, mode=mode)
    return None if change.before is None else backup


def undone(path: Path) -> tuple[Change, Path] | None:
    """The change that reverts the last one, and its backup; None when there is none. `after` may be empty."""
    target = Path(os.path.realpath(path))
    backups = _backups(target)
    if not backups:
        return None
    last = backups[max(backups)]
    return Change(path, read(target), read(last) or ""), last


def undo(change: Change, backup: Path) -> None:
    """Revert a change. Raises OSError."""
    target = Path(os.path.realpath(change.path))
    if change.after:
        write_whole(target, change.after)
    else:
        target.unlink(missing_ok=True)
    backup.unlink()


def _backups(target: Path) -> dict[int, Path]:
    """The backups, by number."""
    siblings = target.parent.iterdir() if target.parent.is_dir() else ()
    found = ((_BACKUP.fullmatch(each.name), each) for each in siblings)
    return {int(match[2]): each for match, each in found if match is not None and match[1] == target.name}


def merged(path: Path, values: Mapping[str, Any], unit: str) -> Change:
    """The file with these values in it, everything else unchanged.

    Raises:
        InputError: it cannot be parsed as JSON with comments, so nothing is touched.
    """
    before = read(path)
    try:
        after = with_values(before or "", values, unit)
        settled = with_values(after, values, unit)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be changed safely ({error}): correct it in the editor, then run this again"
        ) from error
    if settled != after:
        raise InputError(f"{path} cannot be changed safely: add these settings yourself")
    return Change(path, before, after)


def settings_of(path: Path) -> Mapping[str, Any] | None:
    """The content of a settings file, empty if it does not exist; None when it cannot be read as an object."""
    try:
        found = loads(read(path) or "{}")
    except (ValueError, RecursionError, InputError):
        return None
    return found if isinstance(found, Mapping) else None
