"""What `calomel bench speed` asks: contexts of a given size, answers of a given length, cut from held-out files."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from calomel.bench.heldout import BenchDataError, HeldoutFile
from calomel.bench.holes import Hole, TokenMeasure

# Room in front of the cursor is filled with whole files, the target file last; this is what code has on average.
CHARACTERS_PER_TOKEN = 3
SUFFIX_CHARACTERS = 6000


@dataclass(frozen=True, slots=True)
class Cell:
    """One size of context and one length of answer, both in tokens."""

    context: int
    answer: int

    @property
    def name(self) -> str:
        """As in the report's keys: `2k.32` for 2,048 tokens of context and 32 of answer."""
        return f"{size_name(self.context)}.{self.answer}"


def size_name(tokens: int) -> str:
    """2048 as `2k`, 512 as `512`."""
    return f"{tokens // 1024}k" if tokens % 1024 == 0 else str(tokens)


def cell_holes(cell: Cell, files: Sequence[HeldoutFile], measure: TokenMeasure, *, seed: int) -> Iterator[Hole]:
    """Endless holes of one cell: what was there has about `answer` tokens, and the prefix fills the context.

    Raises:
        BenchDataError: no file is long enough for the answer.
    """
    rng = random.Random(f"{seed}:{cell.name}")  # noqa: S311 - seeded, not secret
    long_enough = [file for file in files if len(file.text) > 4 * CHARACTERS_PER_TOKEN * cell.answer]
    if not long_enough:
        raise BenchDataError(f"no held-out file is long enough for an answer of {cell.answer} tokens")
    case = 0
    while True:
        file = rng.choice(long_enough)
        start = rng.randrange(len(file.text) // 4, len(file.text) // 2)
        end = _answer_end(file.text, start, cell.answer, measure)
        yield Hole(
            key=f"{cell.name}:{case}",
            row=cell.name,
            language=file.language,
            path=file.path,
            prefix=_prefix(cell, files, file, start, rng, measure),
            suffix=file.text[end : end + SUFFIX_CHARACTERS],
            answer=file.text[start:end],
            max_tokens=cell.answer,
        )
        case += 1


def before_keystroke(hole: Hole, run: str) -> Hole:
    """The request one keystroke earlier; `run` makes its path, and so the whole prompt, one that no cache knows."""
    typed = hole.prefix[-1:]
    return replace(as_run(hole, run), prefix=hole.prefix[:-1], answer=typed + hole.answer)


def as_run(hole: Hole, run: str) -> Hole:
    """The hole under a path of its own run. Short, since a prompt shows the end of a path only."""
    name = PurePosixPath(hole.path or "file").name
    return replace(hole, path=f"{zlib.crc32(run.encode()):08x}/{name}")


def _answer_end(text: str, start: int, tokens: int, measure: TokenMeasure) -> int:
    """Where the text from `start` on has reached so many tokens."""
    low, high = start + 1, min(len(text), start + tokens * 24)
    while low < high:
        middle = (low + high) // 2
        if measure.count(text[start:middle]) < tokens:
            low = middle + 1
        else:
            high = middle
    return low


def _prefix(
    cell: Cell, files: Sequence[HeldoutFile], file: HeldoutFile, start: int, rng: random.Random, measure: TokenMeasure
) -> str:
    """The target file up to the cursor, with other files of its language before it until the context is full."""
    text = file.text[:start]
    relatives = [other for other in files if other.language == file.language and other is not file] or [file]
    while measure.count(text) < cell.context:
        text = rng.choice(relatives).text + "\n" + text
    # No more than the context can hold: how a door bounds a long file is not what is measured here.
    surplus = measure.count(text) - cell.context
    while surplus > cell.context // 8:
        text = text[surplus * CHARACTERS_PER_TOKEN // 2 :]
        surplus = measure.count(text) - cell.context
    return text
