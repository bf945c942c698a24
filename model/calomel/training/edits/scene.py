"""A scene: one moment of a story, as the model sees it; what was done before it, and which places are asked about."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from calomel.code.languages import line_comment
from calomel.prompts.parts import Edit, Hunk, RegionBounds, line_start, region_around, text_hunks
from calomel.training.edits.story import WORDS, Story

# What the smallest model may rewrite at once. A place is silent if nothing changes within these lines.
REGION: Final = RegionBounds(above=1, below=2, characters=160)


@dataclass(frozen=True, slots=True)
class Focus:
    """A place worth asking about.

    Attributes:
        offset: in characters of the scene's text; of the cursor, or where the line of a change begins.
        kind: of the story, as "rename"; "half_done:rename" while the person is typing; "silence:finished" and the like
            if nothing is to change.
        cursor: whether the cursor is at `offset`.
    """

    offset: int
    kind: str
    cursor: bool

    @property
    def silent(self) -> bool:
        """Whether the lines around this place must stay as they are."""
        return self.kind.startswith("silence:")


@dataclass(frozen=True, slots=True)
class Scene:
    """What the person has done, the file as it is now, and what is still to come.

    Attributes:
        language: of the story.
        path: of the story.
        text: now.
        hunks: the diff stream of this file, oldest first, including the edit in progress.
        changes: all that is still to come, in characters of `text`, sorted, not overlapping; () if nothing is.
        focuses: up to six places: the next change first, then others that are to change, then silent ones.
    """

    language: str
    path: str
    text: str
    hunks: tuple[Hunk, ...]
    changes: tuple[Edit, ...]
    focuses: tuple[Focus, ...]


def is_silent(text: str, changes: Sequence[Edit], offset: int) -> bool:
    """Whether no change is in, or touches, the region around `offset`."""
    start, end = region_around(text, offset, REGION)
    return all(change.end < start or change.start > end for change in changes)


_NUMBER: Final = re.compile(r"(?<![\w.\"'])\d{1,4}(?![\w.\"'])")
_COMMENT_WORD: Final = re.compile(r"(?<=\s)[a-z]{3,12}(?=[\s.,]|\Z)")
_WORDS: Final = tuple(WORDS["comment_words"].split())
_NOTES: Final = tuple(WORDS["notes"])
_CODE_WORD: Final = re.compile(r"\w+|[^\w\s]+")
_SPACED: Final = re.compile(r"(?<=\w) ([-+*/]|==|=) (?=\w)")
_STATEMENT: Final = re.compile(r"[ \t]*(return|if|for|while|let|const|var)\b")
_SHORTEST: Final = 8
_TRIES: Final = 40


def aimless_edit(text: str, language: str, rng: random.Random) -> Edit | None:
    """Draw an edit of one line that no other edit follows from; None if no line of the text allows one."""
    lines = lines_of(text)
    for _ in range(_TRIES):
        start, end = rng.choice(lines)
        edit = rng.choice(_KINDS)(text[start:end], language, rng)
        if edit is not None:
            return Edit(start + edit.start, start + edit.end, edit.text)
    return None


def lines_of(text: str) -> list[tuple[int, int]]:
    """Start and end of every line, without line ends; never empty."""
    spans = [match.span() for match in re.finditer(r"^.*$", text, re.MULTILINE)]
    return spans[:-1] if text.endswith("\n") else spans


def is_comment(line: str, language: str) -> bool:
    """Whether a line is a comment of plain words, and nothing else."""
    return re.match(rf"[ \t]*{line_comment(language)} \S", line) is not None


def _number(line: str, language: str, rng: random.Random) -> Edit | None:
    found = list(_NUMBER.finditer(line))
    if not found or is_comment(line, language):
        return None
    match = rng.choice(found)
    value = int(match[0])
    other = rng.choice((value + 1, value * 2, value * 10, max(0, value - 1), value // 2))
    return None if other == value else Edit(match.start(), match.end(), str(other))


def _comment_word(line: str, language: str, rng: random.Random) -> Edit | None:
    found = list(_COMMENT_WORD.finditer(line)) if is_comment(line, language) else []
    if not found:
        return None
    match, word = rng.choice(found), rng.choice(_WORDS)
    # Half a word at the end would be unpredictable.
    half = Edit(len(line), len(line), " " + word[: rng.randint(2, len(word) - 2)])
    inserted, replaced = Edit(match.start(), match.start(), word + " "), Edit(match.start(), match.end(), word)
    return rng.choice((half, inserted, replaced)) if word != match[0] else None


def _comment_line(line: str, language: str, rng: random.Random) -> Edit | None:
    indent = len(line) - len(line.lstrip())
    if is_comment(line, language):
        return Edit(indent, len(line), "")
    # A comment between the lines of a statement or a string may be wrong; before these it is not.
    if not _STATEMENT.match(line):
        return None
    return Edit(0, 0, f"{line[:indent]}{line_comment(language)} {rng.choice(_NOTES)}\n")


def _deletion(line: str, _language: str, rng: random.Random) -> Edit | None:
    words = list(_CODE_WORD.finditer(line))
    return Edit(rng.choice(words).start(), len(line), "") if len(line.strip()) >= _SHORTEST else None


def _layout(line: str, _language: str, rng: random.Random) -> Edit | None:
    found = list(_SPACED.finditer(line))
    if found and "'" not in line and '"' not in line:
        match = rng.choice(found)
        return Edit(match.start(), match.end(), match[1])
    return Edit(0, 0, "\n") if _STATEMENT.match(line) else None


_KINDS: Final = (_number, _comment_word, _comment_word, _comment_line, _deletion, _layout)


# Changes at most this many lines from the latest one belong to one edit.
_LINE_SPAN: Final = 8


@dataclass(frozen=True, slots=True)
class Step:
    """One change, and whether the person paused before it."""

    change: Edit
    paused: bool = True


def stream(path: str, text: str, steps: Sequence[Step]) -> tuple[Hunk, ...]:
    """All hunks of the steps, oldest first; those of the last edit, which is still open, come last.

    Neighbouring steps are one edit, of which only the last pause is kept. `text` is the text before the first step.
    """
    hunks: list[Hunk] = []
    base, middle = text, None
    latest: int | None = None
    for step in steps:
        change = step.change
        first = text.count("\n", 0, change.start)
        last = first + text.count("\n", change.start, change.end)
        if latest is None or first > latest + _LINE_SPAN or last < latest - _LINE_SPAN:
            hunks += _edit(path, base, middle, text)
            base, middle = text, None
            latest = first
        else:
            middle = text if step.paused else middle
            latest = first + change.text.count("\n")
        text = change.apply(text)
    return (*hunks, *_edit(path, base, middle, text))


def _edit(path: str, base: str, middle: str | None, text: str) -> list[Hunk]:
    states = [base, text] if middle is None else [base, middle, text]
    return [hunk for old, new in pairwise(states) for hunk in text_hunks(path, old, new)]


_EARLIER_SHARE: Final = 0.3
# Most people pause to think between two changes; some type on.
_PAUSE_SHARE: Final = 0.85


def diff_stream(story: Story, made: Iterable[Edit], rng: random.Random) -> tuple[Hunk, ...]:
    """The diff stream after some changes of a story's text, and after what may have been done before them."""
    steps = [Step(change, paused=rng.random() < _PAUSE_SHARE) for change in made]
    text = story.text
    back = aimless_edit(text, story.language, rng) if rng.random() < _EARLIER_SHARE else None
    if back is not None:
        # The inverse edit leads from another text to the story's own.
        steps = [Step(back.inverse(text)), *steps]
        text = back.apply(text)
    return stream(story.path, text, steps)


def moved(offset: int, changes: Iterable[Edit]) -> int:
    """Where an offset is after successive changes; if it was inside of one, where that begins."""
    for change in changes:
        if offset >= change.end:
            offset += len(change.text) - (change.end - change.start)
        elif offset > change.start:
            offset = change.start
    return offset


def places_of(changes: tuple[Edit, ...]) -> list[int]:
    """Where changes ended, in the text after all of them; the latest first."""
    found = [moved(change.start + len(change.text), changes[at + 1 :]) for at, change in enumerate(changes)]
    return found[::-1]


MOST: Final = 6
# Characters around a place within which another one is near.
_NEAR: Final = 1600
_WORD: Final = re.compile(r"[^\W\d]\w{2,}")
_PLACE_TRIES: Final = 12
# The share of finished places that are asked about; of the others, the share that has a word of the change.
_DONE_SHARE: Final = 0.5
_SAME_WORD_SHARE: Final = 0.5


def asked(
    text: str,
    changes: Sequence[Edit],
    wanted: Iterable[Focus],
    near: Iterable[int],
    silence: str,
    count: int,
    rng: random.Random,
) -> tuple[Focus, ...]:
    """`wanted` in its order, then up to `count` places where nothing is to change; every region once.

    Args:
        text: of the scene.
        changes: still to come, in offsets of `text`.
        wanted: places to ask about; a silent one is left out if something is to change there.
        near: offsets worth a silent question, best first: finished places.
        silence: kind of the silent places.
        count: of silent places besides those in `wanted`.
        rng: draws them.
    """
    found: list[Focus] = []
    regions: list[tuple[int, int]] = []

    def add(focus: Focus) -> bool:
        start, end = region_around(text, focus.offset, REGION)
        if any((start < stop and begin < end) or (start, end) == (begin, stop) for begin, stop in regions):
            return False
        if focus.silent and not is_silent(text, changes, focus.offset):
            return False
        found.append(focus)
        regions.append((start, end))
        return True

    for focus in wanted:
        if len(found) < MOST:
            add(focus)
    done = [line_start(text, offset) for offset in near]
    anchors = [focus.offset for focus in found] or done or [0]
    left = min(count, MOST - len(found))
    for offset in done:
        if left and rng.random() < _DONE_SHARE:
            left -= add(Focus(offset, silence, cursor=False))
    for _ in range(_PLACE_TRIES):
        if left:
            left -= add(Focus(_nearby(text, rng.choice(anchors), rng), silence, cursor=False))
    return tuple(found)


def _nearby(text: str, anchor: int, rng: random.Random) -> int:
    """The start of some line near `anchor`; often one that shares a word with its line."""
    low, high = max(0, anchor - _NEAR), min(len(text), anchor + _NEAR)
    if rng.random() < _SAME_WORD_SHARE:
        words = _WORD.findall(text, line_start(text, anchor), anchor + 80)
        if words:
            same = [match.start() for match in re.finditer(rf"\b{rng.choice(words)}\b", text[low:high])]
            if same:
                return line_start(text, low + rng.choice(same))
    return line_start(text, rng.randint(low, high))
