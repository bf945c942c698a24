"""How somebody may have typed the hunks of a change: in which order, line by line, and with pauses where people pause.

The order inside a commit is not known: files stay together, files with tests come last, and a file is edited downwards.
Times are made up: a fast typist's keys, with more pauses after a comma, a bracket or a word than within a word.
That people pause there is the idea of the Zed editor's examples; the numbers are ours.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

from calomel.replay.events import Changed, Edit, Selected, shared_ends
from calomel.suggest.edit import split_lines

_TEST: Final = re.compile(r"(?:^|[/_.-])(?:tests?|specs?|__tests__)(?:[/_.-]|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that a commit replaced.

    Attributes:
        path: of the file, after the commit.
        line: the first line before it, from 0.
        start: of that line, in code points of the file before.
        old, new: lines with their ends.
    """

    path: str
    line: int
    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def hunks_between(path: str, before: str, after: str) -> list[Hunk]:
    """The differences between two texts of a file, from top to bottom."""
    old, new = split_lines(before), split_lines(after)
    starts = [0]
    for each in old:
        starts.append(starts[-1] + len(each))
    found: list[Hunk] = []
    # The common prefix and suffix are most of a file.
    head, tail = shared_ends(old, new)
    first, last = old[head : len(old) - tail], new[head : len(new) - tail]
    for block in LCSseq.opcodes(first, last):
        if block.tag == "equal":
            continue
        line = head + block.src_start
        removed = tuple(first[block.src_start : block.src_end])
        added = tuple(last[block.dest_start : block.dest_end])
        if found and found[-1].line + len(found[-1].old) == line:
            # A removal and an insertion at one place are one hunk.
            before_it = found.pop()
            removed, added, line = before_it.old + removed, before_it.new + added, before_it.line
        found.append(Hunk(path, line, starts[line], removed, added))
    return found


def ordered(hunks: Iterable[Hunk]) -> list[Hunk]:
    """All hunks of a commit, in the order somebody may have made them."""
    return sorted(hunks, key=lambda each: (bool(_TEST.search(each.path)), each.path, each.line))


# 100 words a minute.
KEY_SECONDS: Final = 0.12
# Looking for the place of the next edit, and for the next file.
HUNK_SECONDS: Final = 3.0
FILE_SECONDS: Final = 6.0
LINE_SECONDS: Final = 0.5
PAUSE_SECONDS: Final = (0.4, 2.0)
# Share of places of weight 1 with a pause: within a word, once in 40 letters.
_SHARE: Final = 0.025
_PIECE: Final = re.compile(r"\r\n|\w+|[ \t]+|[^\w \t]")
_WEIGHTS: Final = {
    **dict.fromkeys(",;:([{", 9), **dict.fromkeys(")]}", 7), **dict.fromkeys("+-*/%=<>!&|^~.?", 4),
}  # fmt: skip
# Lines more alike than this are edited, others are rewritten.
_ALIKE: Final = 50.0


@dataclass(frozen=True, slots=True)
class Stroke:
    """One change of a text, and the seconds since the one before it."""

    edit: Edit
    seconds: float


def strokes(hunk: Hunk, start: int, seed: str) -> Iterator[Stroke]:
    """The changes that make a hunk, each in offsets of the text after the earlier ones.

    Args:
        hunk: of a commit.
        start: where its first old line begins in the current text.
        seed: of the pauses; the same one gives the same pauses.
    """
    chance = random.Random(seed)  # noqa: S311 - pauses that can be repeated, no secret
    at = start
    paired = _paired(hunk)
    for old, new in zip(hunk.old[:paired], hunk.new[:paired], strict=True):
        yield from _edited(old, new, at, chance)
        at += len(new)
    rest = sum(len(line) for line in hunk.old[paired:])
    if rest:
        yield Stroke(Edit(at, at + rest, ""), LINE_SECONDS)
    for line in hunk.new[paired:]:
        yield from _written(line, at, chance)
        at += len(line)


def played(made: Iterable[Stroke], entry: int, time: float, document: str) -> Iterator[Selected | Changed]:
    """Strokes as events from `time` on, after a cursor move to the first one."""
    for number, stroke in enumerate(made):
        if number == 0:
            yield Selected(entry, round(time, 3), document, stroke.edit.start, stroke.edit.start)
        time += stroke.seconds
        yield Changed(entry, round(time, 3), document, (stroke.edit,), "typed")


def _paired(hunk: Hunk) -> int:
    """How many lines, counted from the first, are edited in place."""
    count = 0
    for old, new in zip(hunk.old, hunk.new, strict=False):
        if fuzz.ratio(old.strip(), new.strip()) < _ALIKE:
            break
        count += 1
    return count


def _edited(old: str, new: str, at: int, chance: random.Random) -> Iterator[Stroke]:
    head, tail = shared_ends(old, new)
    removed = len(old) - tail - head
    if removed:
        yield Stroke(Edit(at + head, at + head + removed, ""), LINE_SECONDS)
    yield from typed(new[head : len(new) - tail], at + head, chance)


def _written(line: str, at: int, chance: random.Random) -> Iterator[Stroke]:
    """A new line: opened with its indentation, as an editor does it, then typed."""
    content = line.rstrip("\r\n")
    indent = content[: len(content) - len(content.lstrip(" \t"))]
    opened = indent + line[len(content) :]
    if opened:
        yield Stroke(Edit(at, at, opened), LINE_SECONDS)
    yield from typed(content[len(indent) :], at + len(indent), chance)


def typed(text: str, at: int, chance: random.Random) -> Iterator[Stroke]:
    """Text typed key by key, so that there is no pause within a word that is typed in one go."""
    wait = 0.0
    for piece in _pieces(text, chance):
        for key in (piece,) if piece == "\r\n" else piece:
            yield Stroke(Edit(at, at, key), wait + KEY_SECONDS)
            at += len(key)
            wait = 0.0
        wait = chance.uniform(*PAUSE_SECONDS) if chance.random() < _SHARE * _weight(piece) else 0.0


def _pieces(text: str, chance: random.Random) -> Iterator[str]:
    """Words and punctuation; now and then with a stop within a word."""
    for found in _PIECE.finditer(text):
        piece = found[0]
        cut = next((place for place in range(1, len(piece)) if chance.random() < _SHARE), None)
        if piece[0].isalnum() and cut is not None:
            yield piece[:cut]
            piece = piece[cut:]
        yield piece


def _weight(piece: str) -> int:
    if piece[-1].isalnum() or piece[-1] == "_":
        return 7
    return _WEIGHTS.get(piece, 5 if piece.isspace() else 2)
