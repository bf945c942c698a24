"""Reads the outcome log: every line that is whole, whoever wrote it; the others are counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calomel.suggest.outcome_log import numbered
from calomel.suggest.outcome_record import OutcomeRecord, record_of

# More files than anybody keeps; the numbers have no gaps but after a crash in mid-rotation.
_MOST_FILES: Final = 100
_LONGEST_LINE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class OutcomeHistory:
    """What a log holds.

    Attributes:
        records: oldest first.
        bad_lines: lines that were left out: torn by a crash, or not ours.
    """

    records: tuple[OutcomeRecord, ...]
    bad_lines: int


def read_outcomes(path: Path) -> OutcomeHistory:
    """The records of a log and of its rotated files; none without a file. Raises OSError for an unreadable one."""
    found = list(each_outcome(path))
    records = tuple(each for each in found if each is not None)
    return OutcomeHistory(records, len(found) - len(records))


def each_outcome(path: Path, *, in_brief: bool = False) -> Iterator[OutcomeRecord | None]:
    """The same one by one, None for a bad line; `in_brief` as in `record_of`. Raises as `read_outcomes` does."""
    for number in range(_MOST_FILES, -1, -1):
        for line in _lines(numbered(path, number)):
            try:
                yield record_of(line, in_brief=in_brief)
            except ValueError:
                if line.strip():
                    yield None


def _lines(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as opened:
            while line := opened.readline(_LONGEST_LINE):
                yield line
    except FileNotFoundError:
        return
