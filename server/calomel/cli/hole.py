"""A hole in a text: where it begins and ends, and what stands around it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from calomel.cli.errors import InputError


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place between two characters: line and column, both counted from 1, the column in characters."""

    line: int
    column: int

    @classmethod
    def parse(cls, text: str, option: str) -> Place:
        """Read `LINE:COLUMN`; raises InputError, naming `option`, when `text` is something else."""
        match = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", text)
        if match is None or "0" in (match[1].lstrip("0") or "0", match[2].lstrip("0") or "0"):
            raise InputError(f"{option} {text!r} is no LINE:COLUMN with both counted from 1, such as {option} 12:5")
        return cls(int(match[1]), int(match[2]))

    def offset(self, text: str, option: str) -> int:
        """The index into `text` of this place.

        Raises:
            InputError: the text has no such line, or the line no such column.
        """
        lines = text.split("\n")
        if self.line > len(lines):
            raise InputError(f"{option} {self}: the file has {len(lines)} lines")
        length = len(lines[self.line - 1].removesuffix("\r"))
        if self.column > length + 1:
            raise InputError(f"{option} {self}: line {self.line} ends at column {length + 1}")
        return sum(len(line) + 1 for line in lines[: self.line - 1]) + self.column - 1

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Hole:
    """A hole in the file `path`, between `prefix` and `suffix`; what stood in it is forgotten."""

    path: str
    prefix: str
    suffix: str

    @classmethod
    def in_file(cls, file: Path, at: str, to: str | None = None) -> Hole:
        """The hole of `file` from `at` to `to` (both `LINE:COLUMN`; without `to` the hole is empty).

        Raises:
            InputError: the file cannot be read as UTF-8, a place is malformed or outside of it, or `to` is before `at`.
        """
        begin = Place.parse(at, "--at")
        end = begin if to is None else Place.parse(to, "--to")
        if end < begin:
            raise InputError(f"--to {end} is before --at {begin}")
        text = read_source(file)
        first, last = begin.offset(text, "--at"), end.offset(text, "--to")
        return cls(_shown_path(file), text[:first], text[last:])


def read_source(file: Path) -> str:
    """The text of `file`, line endings as they are; raises InputError when it is absent or not UTF-8."""
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 (byte {error.start}); only UTF-8 text can be filled") from error
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error


def _shown_path(file: Path) -> str:
    """The path as the model is told it: below the working folder, or the mere name; never a private absolute path."""
    try:
        return file.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return file.name
