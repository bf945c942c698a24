"""Zed's part of zeta2.1, the way Zed does it: its prompts, and what it makes of an answer."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

EDITABLE_TOKENS: Final = 350
CONTEXT_TOKENS: Final = 150
CURSOR_TOKENS: Final = 8192
_BYTES_A_TOKEN: Final = 3
SHORTEST: Final = 6
LONGEST: Final = 16
_NUDGE: Final = 5
_BRACKETS: Final = ("}", "]", ")")
_WORDS: Final = ("break", "continue", "return", "throw", "end")
MOST_TOKENS: Final = int(4096 * 0.9)
MOST_EVENTS: Final = 6
_DIFF_LINES: Final = 3
_END: Final = "<[end▁of▁sentence]>"
STOP: Final = (_END,)
_CURSOR: Final = "<|user_cursor|>"
_TAG: Final = re.compile(r"<\|marker_(\d+)\|>")

Rows = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Event:
    """One change of a file; `predicted` when the user accepted it."""

    path: str
    before: str
    after: str
    predicted: bool = False

    @property
    def text(self) -> str:
        """As a prompt shows it."""
        diff = difflib.unified_diff(
            self.before.splitlines(keepends=True), self.after.splitlines(keepends=True), n=_DIFF_LINES
        )
        hunks = "".join(line if line.endswith("\n") else f"{line}\n" for line in list(diff)[2:])
        mark = "// User accepted prediction:\n" if self.predicted else ""
        return f"{mark}--- a/{self.path}\n+++ b/{self.path}\n{hunks}"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Offsets into the file: of what is shown, and of what may be rewritten. Both end before a line end."""

    start: int
    end: int
    region_start: int
    region_end: int


def tokens(text: str) -> int:
    """As Zed estimates them."""
    return max(1, len(text.encode()) // _BYTES_A_TOKEN)


def excerpt(text: str, cursor: int) -> Excerpt:
    """The excerpt around a cursor, by lines; Zed widens it to the syntax around it, where that fits."""
    lines = text.split("\n")
    row = text.count("\n", 0, cursor)
    known = _linewise(lines, (row, row), CURSOR_TOKENS)
    region = _linewise(lines, (row, row), EDITABLE_TOKENS, known)
    shown = _linewise(lines, region, _cost(lines, region) + CONTEXT_TOKENS, known)
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    ends = [start + len(line) for start, line in zip(starts, lines, strict=False)]
    return Excerpt(starts[shown[0]], ends[shown[1]], starts[region[0]], ends[region[1]])


def _cost(lines: list[str], rows: Rows) -> int:
    return sum(tokens(line + "\n") for line in lines[rows[0] : rows[1] + 1])


def _linewise(lines: list[str], rows: Rows, budget: int, known: Rows | None = None) -> Rows:
    """More lines below and above in turn, while they fit; the side that has fewer first."""
    first, last = known or (0, len(lines) - 1)
    top, bottom = rows
    left = budget - _cost(lines, rows)
    down = True
    stuck = 0
    while stuck < 2:
        place = bottom + 1 if down else top - 1
        cost = tokens(lines[place] + "\n") if first <= place <= last else left + 1
        if cost <= left:
            left -= cost
            top, bottom, stuck = min(top, place), max(bottom, place), 0
        else:
            stuck += 1
        down = not down
    return top, bottom


def boundaries(region: str) -> tuple[int, ...]:
    """Offsets of the markers: the beginning of the region, of each further block, and the end."""
    lines = region.splitlines(keepends=True)
    starts = list(accumulate(map(len, lines), initial=0))
    firsts = [0]
    at = 1
    while at < len(lines):
        gathered, left = at - firsts[-1], len(lines) - at
        behind_blank = not lines[at - 1].strip() and bool(lines[at].strip())
        if (behind_blank and gathered >= SHORTEST and left >= SHORTEST) or gathered >= LONGEST:
            at = _good_start(lines, at)
            if at < len(lines):
                firsts.append(at)
        at += 1
    return (*(starts[first] for first in firsts), len(region))


def _good_start(lines: list[str], at: int) -> int:
    """A line near `at` that does not close what stands above it."""
    for place in range(at, min(at + _NUDGE + 1, len(lines))):
        word = lines[place].strip()
        if word and not word.startswith(_BRACKETS) and word.rstrip(";").split(" ")[0] not in _WORDS:
            return place
    return at


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt, and what the editor keeps for its answer."""

    prompt: str
    file: str
    excerpt: Excerpt
    markers: tuple[int, ...]

    @property
    def region(self) -> str:
        """What may be rewritten."""
        return self.file[self.excerpt.region_start : self.excerpt.region_end]


def ask(
    path: str, text: str, cursor: int, events: Sequence[Event] = (), related: Sequence[tuple[str, Sequence[str]]] = ()
) -> Asked | None:
    """The prompt at a cursor; None where it would be too long, so that the editor does not ask.

    Args:
        path: with the name of the worktree's folder in front.
        text: of the file, with LF line ends.
        cursor: offset in it.
        events: oldest first.
        related: files, each with its excerpts, the most useful one first.
    """
    shown = excerpt(text, cursor)
    region = text[shown.region_start : shown.region_end]
    markers = boundaries(region)
    suffix = _line("<[fim-suffix]>" + text[shown.region_end : shown.end])
    front = text[shown.start : shown.region_start]
    current = _line(f"<filename>{path}\n{front}{_marked(region, markers, cursor - shown.region_start)}")
    left = MOST_TOKENS - tokens(suffix) - tokens(current) - tokens("<[fim-prefix]><[fim-middle]>")
    history, left = _history(events, left)
    files, left = _files(related, left)
    if left < 0:
        return None
    prompt = f"{suffix}<[fim-prefix]>{files}{history}{current}<[fim-middle]>"
    return Asked(prompt, text, shown, markers)


def _marked(region: str, markers: tuple[int, ...], cursor: int) -> str:
    text = ""
    blocks = list(pairwise(markers))
    for number, (start, end) in enumerate(blocks, 1):
        text += f"<|marker_{number}|>"
        last = number == len(blocks)
        if start <= cursor < end or (last and cursor == end):
            text += region[start:cursor] + _CURSOR + region[cursor:end]
        else:
            text += region[start:end]
    return f"{text}<|marker_{len(markers)}|>"


def _history(events: Sequence[Event], left: int) -> tuple[str, int]:
    taken: list[str] = []
    for event in list(reversed(events))[:MOST_EVENTS]:
        if tokens(event.text) > left:
            break
        left -= tokens(event.text)
        taken.insert(0, event.text)
    return (f"<filename>edit_history\n{''.join(taken)}\n" if taken else ""), left


def _files(related: Sequence[tuple[str, Sequence[str]]], left: int) -> tuple[str, int]:
    text = ""
    for path, pieces in related:
        section = f"<filename>{path}\n" + "".join(f"{_line(piece)}...\n" for piece in pieces) + "\n"
        if tokens(section) <= left:
            left -= tokens(section)
            text += section
    return text, left


def _line(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


class UnreadableAnswerError(Exception):
    """The editor logs an error, and shows nothing."""


def applied(asked: Asked, answer: str) -> str:
    """The file once the whole prediction was accepted.

    Raises:
        UnreadableAnswerError: the markers are not there, or not the prompt's.
    """
    if not answer:
        return asked.file
    tags = list(_TAG.finditer(answer.removesuffix(_END)))
    if len(tags) < 2:
        raise UnreadableAnswerError("fewer than two markers")
    first, last = int(tags[0][1]), int(tags[-1][1])
    if not 1 <= first <= last <= len(asked.markers):
        raise UnreadableAnswerError(f"markers {first} to {last} of {len(asked.markers)}")
    if first == last:
        return asked.file
    new = _TAG.sub("", answer[tags[0].end() : tags[-1].start()]).replace(_CURSOR, "", 1)
    start = asked.excerpt.region_start
    return asked.file[: start + asked.markers[first - 1]] + new + asked.file[start + asked.markers[last - 1] :]
