"""Holes in held-out files: seeded, by kind, cut at characters and not at tokens.

The same files, seed and token measure give the same holes on every machine. Every language gets an equal share of each
kind. Lines that no person typed (longer than 200 characters) are skipped. For the speed bench there are also cells:
contexts of a given size with answers of a given length.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from calomel.report.heldout import BenchDataError, HeldoutFile, Hole

REST_OF_LINE, INSIDE_LINE, INSIDE_TOKEN, INSIDE_INDENT, SEVERAL_LINES = KINDS = (
    "rest_of_line",
    "inside_line",
    "inside_token",
    "inside_indent",
    "several_lines",
)

LINE_TOKENS = 24
SEVERAL_LINES_TOKENS = 96
LONGEST_LINE = 200
TRIES_PER_FILE = 20
_IDENTIFIER = re.compile(r"[^\W\d]\w{3,}")


# The number of tokens in a text.
Measure = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a file: offsets of its start and end (line end excluded), and its text."""

    start: int
    end: int
    text: str

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip(" \t"))


_Span = tuple[int, int]
_Cutter = Callable[[random.Random, str, Sequence[_Line]], _Span | None]


def make_holes(files: Sequence[HeldoutFile], measure: Measure, *, per_kind: int, seed: int) -> tuple[Hole, ...]:
    """Up to `per_kind` holes of each kind, interleaved so that every stretch holds all kinds and languages alike.

    A language with too few files gives fewer holes; the others do not fill in for it.
    """
    languages = sorted({file.language for file in files})
    share = -(-per_kind // max(1, len(languages)))
    columns = [
        _holes_of(kind, [file for file in files if file.language == language], measure, share, seed)
        for kind in KINDS
        for language in languages
    ]
    return tuple(column[row] for row in range(share) for column in columns if row < len(column))


def _holes_of(kind: str, files: Sequence[HeldoutFile], measure: Measure, count: int, seed: int) -> list[Hole]:
    """`count` holes of one kind in one language: one a file in shuffled order, then a second one in each, and so on."""
    usable = [(file, lines) for file in files if len(lines := _lines(file.text)) > 1]
    random.Random(f"{seed}:{kind}").shuffle(usable)  # noqa: S311 - seeded, not secret
    holes: list[Hole] = []
    for turn in range(TRIES_PER_FILE):
        for file, lines in usable:
            if len(holes) == count:
                return holes
            rng = random.Random(f"{seed}:{kind}:{file.package}:{file.path}:{turn}")  # noqa: S311 - seeded, not secret
            holes += _cut(kind, rng, file, lines, measure)
    return holes


def rests_going_down(file: HeldoutFile, measure: Measure, *, count: int, seed: int) -> tuple[Hole, ...]:
    """A rest of a line in each of `count` stretches of `file`, from its beginning to its end.

    All stretches have the same number of lines; one in which nothing fits gives no hole.
    """
    lines = _lines(file.text)
    rng = random.Random(f"{seed}:down:{file.package}:{file.path}")  # noqa: S311 - seeded, not secret
    holes: list[Hole] = []
    for number in range(count):
        stretch = lines[number * len(lines) // count : (number + 1) * len(lines) // count]
        holes += _cut(REST_OF_LINE, rng, file, stretch, measure)
    return tuple(holes)


def _cut(kind: str, rng: random.Random, file: HeldoutFile, lines: Sequence[_Line], measure: Measure) -> list[Hole]:
    """A hole of this kind in some of the lines; None when nothing fits."""
    most = SEVERAL_LINES_TOKENS if kind == SEVERAL_LINES else LINE_TOKENS
    for _ in range(TRIES_PER_FILE if lines else 0):
        start, end = _CUTTERS[kind](rng, file.text, lines) or (0, 0)
        answer = file.text[start:end]
        if answer.strip() and measure(answer) <= most:
            return [
                Hole(
                    key=f"{kind}:{file.package}:{file.path}:{start}:{end}",
                    row=kind,
                    language=file.language,
                    path=file.path,
                    prefix=file.text[:start],
                    suffix=file.text[end:],
                    answer=answer,
                    max_tokens=128 if kind == SEVERAL_LINES else 64,
                )
            ]
    return []


def _lines(text: str) -> list[_Line]:
    """The lines of `text` that are not blank and were plausibly typed."""
    found, start = [], 0
    for raw in text.split("\n"):
        if raw.strip() and len(raw) <= LONGEST_LINE:
            found.append(_Line(start, start + len(raw), raw))
        start += len(raw) + 1
    return found


def _rest_of_line(rng: random.Random, _: str, lines: Sequence[_Line]) -> _Span | None:
    """From any character after the line's first one to the line's end."""
    line = rng.choice(lines)
    visible = len(line.text.rstrip())
    if visible - line.indent < 2:  # noqa: PLR2004 - one character before the cursor and one after it
        return None
    start = line.start + rng.randrange(line.indent + 1, visible)
    return start, line.end


def _inside_line(rng: random.Random, _: str, lines: Sequence[_Line]) -> _Span | None:
    """Both ends strictly inside one line's visible text."""
    line = rng.choice(lines)
    first, last = line.indent + 1, len(line.text.rstrip()) - 1
    if last - first < 1:
        return None
    start, end = sorted(rng.sample(range(first, last + 1), 2))
    return line.start + start, line.start + end


def _inside_token(rng: random.Random, _: str, lines: Sequence[_Line]) -> _Span | None:
    """Both ends strictly inside one identifier of at least four characters."""
    line = rng.choice(lines)
    names = list(_IDENTIFIER.finditer(line.text))
    if not names:
        return None
    name = rng.choice(names)
    start, end = sorted(rng.sample(range(name.start() + 1, name.end()), 2))
    return line.start + start, line.start + end


def _inside_indent(rng: random.Random, _: str, lines: Sequence[_Line]) -> _Span | None:
    """From within the line's indentation to the line's end; the rest of the indentation is part of the hole."""
    line = rng.choice(lines)
    if line.indent == 0:
        return None
    start = line.start + rng.randrange(line.indent)
    return start, line.end


def _several_lines(rng: random.Random, text: str, lines: Sequence[_Line]) -> _Span | None:
    """Two to four lines, half the time from their first line's start, half the time from inside it."""
    count = rng.randint(2, 4)
    index = rng.randrange(len(lines))
    if index + count > len(lines):
        return None
    first, last = lines[index], lines[index + count - 1]
    start = first.start
    if rng.random() < 0.5:  # noqa: PLR2004 - a fair coin
        visible = len(first.text.rstrip())
        if visible - first.indent < 2:  # noqa: PLR2004 - as above
            return None
        start += rng.randrange(first.indent + 1, visible)
    # Blank lines in between count: the hole must not be longer than four lines.
    if text.count("\n", start, last.end) > 3:  # noqa: PLR2004 - four lines
        return None
    return start, last.end


_CUTTERS: dict[str, _Cutter] = {
    REST_OF_LINE: _rest_of_line,
    INSIDE_LINE: _inside_line,
    INSIDE_TOKEN: _inside_token,
    INSIDE_INDENT: _inside_indent,
    SEVERAL_LINES: _several_lines,
}


# Whole files fill the space before the cursor, the target file last; this is code's average.
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


def cell_holes(cell: Cell, files: Sequence[HeldoutFile], measure: Measure, *, seed: int) -> Iterator[Hole]:
    """Endless holes of one cell: the text removed has about `answer` tokens, and the prefix fills the context.

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
    """The request one keystroke earlier; `run` changes its path, so that no cache has any part of the prompt."""
    typed = hole.prefix[-1:]
    return replace(as_run(hole, run), prefix=hole.prefix[:-1], answer=typed + hole.answer)


def as_run(hole: Hole, run: str) -> Hole:
    """The hole under a path unique to its run; short, since a prompt shows only the end of a path."""
    name = PurePosixPath(hole.path or "file").name
    return replace(hole, path=f"{zlib.crc32(run.encode()):08x}/{name}")


def _answer_end(text: str, start: int, tokens: int, measure: Measure) -> int:
    """The offset at which the text from `start` on reaches this many tokens."""
    low, high = start + 1, min(len(text), start + tokens * 24)
    while low < high:
        middle = (low + high) // 2
        if measure(text[start:middle]) < tokens:
            low = middle + 1
        else:
            high = middle
    return low


def _prefix(
    cell: Cell, files: Sequence[HeldoutFile], file: HeldoutFile, start: int, rng: random.Random, measure: Measure
) -> str:
    """The target file up to the cursor, with other files of its language before it until the context is full."""
    text = file.text[:start]
    relatives = [other for other in files if other.language == file.language and other is not file] or [file]
    while measure(text) < cell.context:
        text = rng.choice(relatives).text + "\n" + text
    # No more than the context can hold: how a door bounds a long file is not what is measured here.
    surplus = measure(text) - cell.context
    while surplus > cell.context // 8:
        text = text[surplus * CHARACTERS_PER_TOKEN // 2 :]
        surplus = measure(text) - cell.context
    return text
