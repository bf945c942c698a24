"""Packed files as logs: stories of edits, typed change by change, and files of a corpus, partly retyped.

Pauses in stories are made up as for a git history. Finished states show no typing errors, replaced words or abandoned
lines: in the second kind some blocks are removed from a file and typed key by key, with errors that are noticed later,
words that are replaced by others, and lines that are begun and deleted again.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Final, TypeVar

from calomel.prompts.parts import Edit, composed
from calomel.replay.events import (
    Changed,
    Checks,
    Event,
    Focused,
    LogError,
    Opened,
    ReplayLog,
    apply_edits,
    language_of,
)
from calomel.replay.git import HUNK_SECONDS, KEY_SECONDS, LINE_SECONDS, Stroke, hunks_between, played, strokes, typed
from calomel.report.heldout import HELDOUT, BenchDataError, packed_rows
from calomel.storage.failures import cause

T = TypeVar("T")

HELDOUT_EDITS: Final = HELDOUT.with_name("heldout-edits.jsonl.zst")


# The share of reordered stories that still go down their file, from another place.
_ONWARDS: Final = 0.6


def applied(text: str, changes: Iterable[Edit]) -> str:
    """The text after all changes, applied one after the other."""
    for change in changes:
        text = change.apply(text)
    return text


@dataclass(frozen=True, slots=True)
class Story:
    """A text and what a person does to it, change by change.

    Attributes:
        kind: of the intent, such as `rename`.
        language: of the file.
        path: of the file.
        text: before the first change.
        changes: each in offsets of the text after the earlier ones.
    """

    kind: str
    language: str
    path: str
    text: str
    changes: tuple[Edit, ...]

    @property
    def id(self) -> str:
        """Short and the same in every run."""
        rows = [[change.start, change.end, change.text] for change in self.changes]
        told = json.dumps([self.kind, self.path, self.text, rows])
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    def after(self, count: int) -> str:
        """The text after the first `count` changes."""
        return applied(self.text, self.changes[:count])


def read_stories(path: Path | None = None) -> tuple[Story, ...]:
    """The committed held-out stories, or those at `path`: JSON lines, compressed with zstandard.

    Raises:
        BenchDataError: the file is absent or not what it should be.
    """
    source = path if path is not None else HELDOUT_EDITS
    try:
        return tuple(_story(row, source) for row in packed_rows(source))
    except (ValueError, KeyError, TypeError) as error:
        raise BenchDataError(f"{source} is damaged: {cause(error)}") from error


def turned(story: Story) -> Story:
    """The same edits in another order: from one of them to the last and then from the first, or upwards.

    Stories go down their file, which people need not do: a model fitted to that order learns that nothing comes above
    the cursor.
    """
    edits = composed(len(story.text), story.changes)
    rng = random.Random(story.id)  # noqa: S311 - a draw that is the same in every run
    first = rng.randrange(len(edits)) if edits else 0
    order = (*edits[first:], *edits[:first]) if rng.random() < _ONWARDS else edits[::-1]
    found = []
    for number, edit in enumerate(order):
        by = sum(len(done.text) - (done.end - done.start) for done in order[:number] if done.start < edit.start)
        found.append(Edit(edit.start + by, edit.end + by, edit.text))
    return replace(story, changes=tuple(found))


def _story(row: Mapping[str, Any], source: Path) -> Story:
    changes = tuple(Edit(int(start), int(end), str(text)) for start, end, text in row["changes"])
    story = Story(str(row["kind"]), str(row["language"]), str(row["path"]), str(row["text"]), changes)
    length = len(story.text)
    for change in changes:
        if not 0 <= change.start <= change.end <= length:
            raise BenchDataError(f"{source} has a change outside of its text: {story.path}, {story.kind}")
        length += len(change.text) - (change.end - change.start)
    return story


# Where people pause within an edit, and how often; behind other characters 3, within a word 1.
_PAUSES: Final = {**dict.fromkeys(",;:([{=", 10), **dict.fromkeys(")]}", 8), **dict.fromkeys(" \t\n", 6)}
_PAUSES_ELSEWHERE, _PAUSES_AT_WORD_END, _PAUSES_IN_WORD = 3, 8, 1


@dataclass(frozen=True)
class Moment:
    """One question: which edit comes next, if any?

    Attributes:
        story: that it is a moment of.
        done: the changes so far, in order; the last one may be half of the story's.
        coming: the changes still to come, in offsets of the current text, sorted, not overlapping; empty where silence
            is right.
        half: the last change is only half done.
    """

    story: Story
    done: tuple[Edit, ...]
    coming: tuple[Edit, ...]
    half: bool = field(default=False)

    @property
    def id(self) -> str:
        """The story's, and how many changes are done."""
        return f"{self.story.id}-{len(self.done)}{'h' if self.half else ''}"

    @property
    def silent(self) -> bool:
        """Whether there is nothing left to do."""
        return not self.coming

    @cached_property
    def text(self) -> str:
        """The document at this moment."""
        return applied(self.story.text, self.done)

    @property
    def cursor(self) -> int:
        """The offset after the text written last."""
        last = self.done[-1]
        return last.start + len(last.text)

    def right(self, result: str) -> bool:
        """Whether a suggestion that makes the document `result` is right.

        It is if it makes at least one of the changes still to come, each completely, and nothing else. A person may
        continue at any of the places, and a suggestion may make several changes.
        """
        # Reachable offsets of `result` after each change, each with whether a change was made on the way.
        reached = {(0, False)}
        at = 0
        for change in self.coming:
            gap, old = self.text[at : change.start], self.text[change.start : change.end]
            behind = {(place + len(gap), done) for place, done in reached if result.startswith(gap, place)}
            reached = {(place + len(old), done) for place, done in behind if result.startswith(old, place)}
            reached |= {
                (place + len(change.text), True) for place, _ in behind if result.startswith(change.text, place)
            }
            at = change.end
        rest = self.text[at:]
        return any(done and result[place:] == rest for place, done in reached)


def moments(story: Story) -> tuple[Moment, ...]:
    """One moment in the middle of a story, and the one at its end.

    The middle is drawn by the story's id: after some of its changes, but not all. A story of one change is interrupted
    within it, where there is enough to write.
    """
    rng = random.Random(story.id)  # noqa: S311 - a draw that is the same in every run
    found = []
    if len(story.changes) > 1:
        count = rng.randrange(1, len(story.changes))
        found.append(_moment(story, story.changes[:count], story.changes[count:]))
    for change in story.changes if len(story.changes) == 1 else ():
        found += _interrupted(story, change, rng)
    if story.changes:
        found.append(_moment(story, story.changes, ()))
    # If one change undoes another, nothing is left to do, and there is no story.
    return tuple(moment for moment in found if moment.silent == (moment is found[-1]))


def chosen(stories: Iterable[Story], kinds: Sequence[str] = (), limit: int | None = None) -> tuple[Moment, ...]:
    """At most `limit` moments of stories of some kinds: equally many of each kind and language, as far as there are.

    The same for the same stories, whatever their order.
    """
    cells: dict[tuple[str, str, bool], list[Moment]] = defaultdict(list)
    for story in stories:
        if kinds and story.kind not in kinds:
            continue
        for moment in moments(story):
            cells[moment.story.kind, moment.story.language, moment.silent].append(moment)
    # Ids are hashes, so that their order is a draw.
    return spread([sorted(cells[key], key=lambda moment: moment.id) for key in sorted(cells)], limit)


def spread(cells: Iterable[Sequence[T]], limit: int | None) -> tuple[T, ...]:
    """At most `limit` items, one of each cell in turn."""
    turns = (item for turn in zip_longest(*cells) for item in turn if item is not None)
    return tuple(islice(turns, limit))


def _moment(story: Story, done: Sequence[Edit], coming: Sequence[Edit], *, half: bool = False) -> Moment:
    return Moment(story, tuple(done), composed(len(applied(story.text, done)), coming), half)


def _interrupted(story: Story, change: Edit, rng: random.Random) -> list[Moment]:
    """The only change of a story, cut where people pause."""
    # Something visible is left to write.
    cuts = range(1, len(change.text.rstrip()))
    if not cuts:
        return []
    cut = rng.choices(cuts, [_pause(change.text, at) for at in cuts])[0]
    at = change.start + cut
    half = Edit(change.start, change.end, change.text[:cut])
    return [_moment(story, [half], [Edit(at, at, change.text[cut:])], half=True)]


def _pause(text: str, at: int) -> int:
    before, after = text[at - 1], text[at]
    if before in _PAUSES:
        return _PAUSES[before]
    if _is_letter(before):
        return _PAUSES_IN_WORD if _is_letter(after) else _PAUSES_AT_WORD_END
    return _PAUSES_ELSEWHERE


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"


# Where Debian stores packages: `gocode/src/HOST/OWNER/NAME`, `registry/NAME`.
_DEPTHS: Final = {"gocode": 5, "registry": 2}
_ANYWHERE: Final = frozenset(
    {"src", "lib", "source", "examples", "dist", "test", "tests", "package", "packages", "build", "esm"}
)


def read_packed_logs(path: Path) -> list[ReplayLog]:
    """The logs in a file of stories of edits, or of files of a corpus: the first line determines which.

    Raises LogError.
    """
    try:
        rows = list(packed_rows(path))
        if rows and "changes" in rows[0]:
            found = [story_log(story) for story in read_stories(path)]
        else:
            packages: defaultdict[str, dict[str, str]] = defaultdict(dict)
            for row in rows:
                packages[row.get("package", "")][row["path"]] = row["text"]
            found = [
                replace(log, project={path: text for path, text in files.items() if path != own})
                for package, files in packages.items()
                for own, written in files.items()
                if (log := writing_log(own, written, package)) is not None
            ]
    except BenchDataError as error:
        raise LogError(str(error)) from error
    except KeyError as error:
        raise LogError(f"{path} has neither edit stories nor files: {error} is missing.") from error
    if not found:
        raise LogError(f"nothing to replay in {path}: no story, and no file with blocks to write.")
    return found


def story_log(story: Story) -> ReplayLog:
    """A story's changes, typed."""
    language = language_of(story.path)
    events: list[Event] = [Opened(0, 0.0, story.path, language, story.text), Focused(0, 0.0, story.path)]
    text = story.text
    time = 0.0
    for number, change in enumerate(story.changes, 1):
        after, moved = change.apply(text), 0
        for hunk in hunks_between(story.path, text, after):
            made = strokes(hunk, hunk.start + moved, f"{story.id}:{number}:{hunk.line}")
            events += played(made, number, time + HUNK_SECONDS, story.path)
            time = events[-1].time
            moved += sum(map(len, hunk.new)) - sum(map(len, hunk.old))
        text = after
    checks = Checks(end_content_right=_played_to(story.text, events) == text)
    metadata = {"group": package_of(story.path), "kind": story.kind}
    return ReplayLog(f"{story.kind}-{story.id}", "story", events, checks=checks, metadata=metadata)


def _played_to(text: str, events: Iterable[Event]) -> str:
    """The text that the changes lead to."""
    for event in events:
        text = apply_edits(text, event.edits) if isinstance(event, Changed) else text
    return text


def package_of(path: str) -> str:
    """The package, as far as a path tells: its first uncommon folder; else the path itself."""
    parts = path.split("/")
    for name, depth in _DEPTHS.items():
        if name in parts:
            return "/".join(parts[: parts.index(name) + depth])
    return next((part for part in parts[:-1] if part not in _ANYWHERE), path)


# Limit on the text around the blocks.
_CHARACTERS: Final = 12_000
_BLOCKS: Final = (2, 4)
_LINES: Final = (3, 12)
# Shares of words with a typing error, of words that replace another one, and of lines that replace another one.
# In a recorded session of 92 minutes 488 of 3,247 changes delete, and 430 replace.
_ERRORS: Final = 0.05
_OTHER_WORDS: Final = 0.06
_OTHER_LINES: Final = 0.06
# Keys until an error is noticed.
_NOTICED: Final = (0, 4)
_NEIGHBOURS: Final = "asdfghjklqwertyuiopzxcvbnm"
_PIECE: Final = re.compile(r"\w+|[^\w\n]+")
_WORD: Final = re.compile(r"[^\W\d]\w{2,}")
_LONGEST_WORD: Final = 24


def writing_log(path: str, text: str, package: str = "") -> ReplayLog | None:
    """A log of somebody typing blocks of a package's file; None where the file is too small or has none."""
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
        events += played(_written(lines[first:last], lines, at, chance), entry, time, path)
        time = events[-1].time
    checks = Checks(end_content_right=_played_to(now, events) == text)
    return ReplayLog(f"writing-{name}", "story", events, checks=checks, metadata={"group": package or package_of(path)})


def _cropped(text: str, chance: random.Random) -> str:
    """Whole lines of a file, not too many."""
    if len(text) <= _CHARACTERS:
        return text if text.endswith("\n") else f"{text}\n"
    begin = text.rfind("\n", 0, chance.randrange(len(text) - _CHARACTERS)) + 1
    return text[begin : text.rfind("\n", 0, begin + _CHARACTERS) + 1]


def _blocks(lines: list[str], chance: random.Random) -> list[tuple[int, int]]:
    """First and last line of runs of lines, from top to bottom, not adjacent."""
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
            yield from _detour(other, place, 0, chance)
        yield from _with_errors(content[len(indent) :], lines, place, chance)
        at += len(line)


def _with_errors(text: str, lines: list[str], at: int, chance: random.Random) -> Iterator[Stroke]:
    for found in _PIECE.finditer(text):
        piece, right = found[0], 0
        is_word = len(piece) > 2 and piece[0].isalpha()  # noqa: PLR2004 (words)
        if is_word and chance.random() < _ERRORS:
            # A wrong key, and some more until it is noticed.
            right = chance.randrange(1, len(piece))
            end = min(len(piece), right + 1 + chance.randint(*_NOTICED))
            wrong = piece[:right] + chance.choice(_NEIGHBOURS) + piece[right + 1 : end]
            yield from _detour(wrong, at, right, chance)
        elif is_word and chance.random() < _OTHER_WORDS:
            yield from _detour(_other_word(lines, piece, chance), at, 0, chance)
        yield from typed(piece[right:], at + right, chance)
        at += len(piece)


def _detour(text: str, at: int, right: int, chance: random.Random) -> Iterator[Stroke]:
    """A text is typed, then deleted back to its first `right` characters."""
    yield from typed(text, at, chance)
    yield from _deleted(at + right, text[right:], chance)


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
