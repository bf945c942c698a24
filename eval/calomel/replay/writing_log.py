"""Writing sessions made of files: blocks of a file are written anew, with the detours that finished code does not show.

A history of finished states knows no typing errors, no words chosen twice and no beginnings given up, and its edits are
alike more often than what people do all day: somebody who only learns from those believes too much in carrying on. Here
a file lacks some of its blocks; they are typed key by key, with errors that are noticed some keys later, words that
give way to other ones, and lines that are begun and deleted again. At the end the file is what it was.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from calomel.replay.events import (
    Changed,
    Checks,
    Edit,
    Event,
    Focused,
    LogError,
    Opened,
    ReplayLog,
    Selected,
    apply_edits,
)
from calomel.replay.git_typing import HUNK_SECONDS, KEY_SECONDS, LINE_SECONDS, Stroke, typed
from calomel.replay.language_ids import language_of
from calomel.replay.story_log import package_of

# Of the text around the blocks.
_CHARACTERS: Final = 12_000
_BLOCKS: Final = (2, 4)
_LINES: Final = (3, 12)
# Shares of words with a typing error, of words that were another one first, and of lines that were another one first.
# In a recorded session of 92 minutes 488 of 3,247 changes delete, and 430 replace.
_ERRORS: Final = 0.05
_OTHER_WORDS: Final = 0.06
_OTHER_LINES: Final = 0.06
# Keys until somebody notices an error.
_NOTICED: Final = (0, 4)
_NEIGHBOURS: Final = "asdfghjklqwertyuiopzxcvbnm"
_PIECE: Final = re.compile(r"\w+|[^\w\n]+")
_WORD: Final = re.compile(r"[^\W\d]\w{2,}")
_LONGEST_WORD: Final = 24


def read_writing_logs(rows: Iterable[Mapping[str, Any]], name: str) -> list[ReplayLog]:
    """A log of each file of a corpus that has enough blocks. Raises LogError.

    Args:
        rows: of the corpus: `path`, `text`, and the `package` where there is one.
        name: of the corpus, for the error.
    """
    found: list[ReplayLog] = []
    try:
        for row in rows:
            log = writing_log(str(row["path"]), str(row["text"]), str(row.get("package", "")))
            if log is not None:
                found.append(log)
    except KeyError as error:
        raise LogError(f"{name} holds neither stories of edits nor files: {error} is missing.") from error
    return found


def writing_log(path: str, text: str, package: str = "") -> ReplayLog | None:
    """Somebody writes blocks of a file of a package; None where the file is too small or has none."""
    name = hashlib.sha256(f"{path}\n{text}".encode(errors="surrogatepass")).hexdigest()[:12]
    chance = random.Random(name)  # noqa: S311 - a session that can be repeated, no secret
    text = _cropped(text, chance)
    lines = text.splitlines(keepends=True)
    blocks = _blocks(lines, chance)
    if not blocks or "\r" in text:
        return None
    missing = {row for first, last in blocks for row in range(first, last)}
    now = "".join(line for row, line in enumerate(lines) if row not in missing)
    language = language_of(path)
    events: list[Event] = [Opened(0, 0.0, path, language, now), Focused(0, 0.0, path)]
    time = 0.0
    for entry, (first, last) in enumerate(blocks, 1):
        time += HUNK_SECONDS * chance.uniform(1, 5)
        at = sum(len(line) for row, line in enumerate(lines) if row < first)
        events.append(Selected(entry, round(time, 3), path, at, at))
        for stroke in _written(lines[first:last], lines, at, chance):
            time += stroke.seconds
            events.append(Changed(entry, round(time, 3), path, (stroke.edit,), "typed"))
            now = apply_edits(now, (stroke.edit,))
    checks = Checks(end_content_right=now == text)
    return ReplayLog(f"writing-{name}", "story", events, checks=checks, metadata={"group": package or package_of(path)})


def _cropped(text: str, chance: random.Random) -> str:
    """Whole lines of a file, not too many."""
    if len(text) <= _CHARACTERS:
        return text if text.endswith("\n") else f"{text}\n"
    begin = text.rfind("\n", 0, chance.randrange(len(text) - _CHARACTERS)) + 1
    return text[begin : text.rfind("\n", 0, begin + _CHARACTERS) + 1]


def _blocks(lines: list[str], chance: random.Random) -> list[tuple[int, int]]:
    """First and last line of runs of lines, from top to bottom, apart from each other."""
    starts = [row for row in range(2, len(lines) - _LINES[1]) if lines[row].strip() and not lines[row - 1].strip()]
    chance.shuffle(starts)
    found: list[tuple[int, int]] = []
    for row in starts:
        last = row + chance.randint(*_LINES)
        if all(last + 1 < first or row > end + 1 for first, end in found):
            found.append((row, last))
        if len(found) == _BLOCKS[1]:
            break
    return sorted(found) if len(found) >= _BLOCKS[0] else []


def _written(block: list[str], lines: list[str], at: int, chance: random.Random) -> Iterator[Stroke]:
    """The block's lines, each opened with its indentation and then typed, with detours."""
    for line in block:
        content = line.rstrip("\n")
        indent = content[: len(content) - len(content.lstrip(" \t"))]
        yield Stroke(Edit(at, at, f"{indent}\n"), LINE_SECONDS)
        place = at + len(indent)
        if chance.random() < _OTHER_LINES:
            other = chance.choice(lines).strip()[: chance.randint(4, 30)]
            yield from typed(other, place, chance)
            yield from _deleted(place, other, chance)
        yield from _with_errors(content[len(indent) :], lines, place, chance)
        at += len(line)


def _with_errors(text: str, lines: list[str], at: int, chance: random.Random) -> Iterator[Stroke]:
    for found in _PIECE.finditer(text):
        piece = found[0]
        if len(piece) > 2 and piece[0].isalpha() and chance.random() < _ERRORS:  # noqa: PLR2004 (words)
            yield from _mistyped(piece, at, chance)
        elif len(piece) > 2 and piece[0].isalpha() and chance.random() < _OTHER_WORDS:  # noqa: PLR2004
            other = _other_word(lines, piece, chance)
            yield from typed(other, at, chance)
            yield from _deleted(at, other, chance)
            yield from typed(piece, at, chance)
        else:
            yield from typed(piece, at, chance)
        at += len(piece)


def _mistyped(word: str, at: int, chance: random.Random) -> Iterator[Stroke]:
    """A wrong key, some more keys, then all of them taken back and typed right."""
    wrong = chance.randrange(1, len(word))
    end = min(len(word), wrong + 1 + chance.randint(*_NOTICED))
    first = word[:wrong] + chance.choice(_NEIGHBOURS) + word[wrong + 1 : end]
    yield from typed(first, at, chance)
    yield from _deleted(at + wrong, first[wrong:], chance)
    yield from typed(word[wrong:], at + wrong, chance)


def _deleted(at: int, text: str, chance: random.Random) -> Iterator[Stroke]:
    """Backspace after backspace, after a moment's thought."""
    wait = chance.uniform(0.2, 1.5)
    for end in range(at + len(text), at, -1):
        yield Stroke(Edit(end - 1, end, ""), wait + KEY_SECONDS)
        wait = 0.0


def _other_word(lines: list[str], word: str, chance: random.Random) -> str:
    """Some word of the file that is not this one."""
    for _ in range(8):
        words = [found[0] for found in _WORD.finditer(chance.choice(lines)) if found[0] != word]
        if words:
            return chance.choice(words)[:_LONGEST_WORD]
    return word[::-1]
