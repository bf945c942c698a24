"""What a person does in one file: types lines anew, takes letters back, breaks lines, and looks at another place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from calomel.bench.heldout import BenchDataError, HeldoutFile

Kind = Literal["letter", "deletion", "new line", "jump", "way back"]

KINDS: Final[tuple[Kind, ...]] = ("letter", "deletion", "new line", "jump", "way back")
# Keystrokes that go on where the last one was; a jump moves the window of the file that the prompt shows.
TYPED: Final[tuple[Kind, ...]] = ("letter", "deletion", "new line")
JUMP_LINES: Final = 300
# Of each line that is typed, so many letters; then some are taken back, and the line is broken.
_LETTERS: Final = 8
_TAKEN_BACK: Final = 2
# Lines with less text than this say little about typing.
_SHORT: Final = 12


@dataclass(frozen=True, slots=True)
class Moment:
    """The file as it is when a suggestion is asked for, and where the cursor is then."""

    kind: Kind
    text: str
    offset: int


def long_file(files: Sequence[HeldoutFile], language: str = "python") -> HeldoutFile:
    """The longest file of a language: there has to be room to jump in.

    Raises:
        BenchDataError: none is long enough.
    """
    found = max(
        (file for file in files if file.language == language), key=lambda file: file.text.count("\n"), default=None
    )
    if found is None or found.text.count("\n") < 2 * JUMP_LINES:
        raise BenchDataError(f"no held-out file of {language} has {2 * JUMP_LINES} lines")
    return found


def moments(text: str, lines: int, jumps: int) -> Iterator[Moment]:
    """The moments of somebody who writes some lines of the middle of `text`, which are not there yet.

    Of each of `lines` lines the first letters are typed and the last of them taken back; then the rest comes at once,
    as an accepted suggestion does, and a new line is begun. Behind as many of them as there are `jumps`, the cursor
    goes some hundred lines up, and back. The first moment is the one before anything is typed.
    """
    rows = text.split("\n")
    first = len(rows) // 2
    long = [number for number in range(first, len(rows)) if len(rows[number].strip()) >= _SHORT][:lines]
    written = "".join(f"{row}\n" for row in rows[:first])
    behind = "\n" + "\n".join(rows[long[-1] + 1 :])
    yield Moment("jump", written + behind, len(written))
    for number in range(first, long[-1] + 1):
        row = rows[number]
        if number in long:
            yield from _typed(written, row, behind)
        written += row + "\n"
        if number in long:
            indented = written + _indent(row)
            yield Moment("new line", indented + behind, len(indented))
        if number in long[:jumps]:
            away = len("\n".join(rows[: number - JUMP_LINES]))
            yield Moment("jump", written + behind, away)
            yield Moment("way back", written + behind, len(written))


def _typed(written: str, row: str, behind: str) -> Iterator[Moment]:
    """The beginning of a row, letter by letter, and the last letters taken back."""
    start = len(_indent(row))
    stop = start + _LETTERS
    ends: list[tuple[Kind, int]] = [("letter", end) for end in range(start + 1, stop + 1)]
    ends += [("deletion", end) for end in range(stop - 1, stop - 1 - _TAKEN_BACK, -1)]
    for kind, end in ends:
        yield Moment(kind, written + row[:end] + behind, len(written) + end)


def _indent(row: str) -> str:
    return row[: len(row) - len(row.lstrip())]
