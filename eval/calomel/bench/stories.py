"""Held-out edits: stories of one intent each, in files of packages that no training corpus contains."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import zstandard

from calomel.bench.heldout import BenchDataError

HELDOUT_EDITS: Final = Path(__file__).with_name("data") / "heldout-edits.jsonl.zst"


@dataclass(frozen=True, slots=True)
class Change:
    """Replace the characters from `start` to `end` by `text`."""

    start: int
    end: int
    text: str

    def apply(self, text: str) -> str:
        """The text behind it."""
        return text[: self.start] + self.text + text[self.end :]


@dataclass(frozen=True, slots=True)
class Story:
    """A text and what a person does to it, change by change.

    Attributes:
        kind: of the intent, such as `rename`.
        language: of the file.
        path: of the file.
        text: before the first change.
        changes: each in offsets of the text that the earlier ones leave.
    """

    kind: str
    language: str
    path: str
    text: str
    changes: tuple[Change, ...]

    @property
    def id(self) -> str:
        """Short and the same in every run."""
        rows = [[change.start, change.end, change.text] for change in self.changes]
        told = json.dumps([self.kind, self.path, self.text, rows])
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    def after(self, count: int) -> str:
        """The text behind the first `count` changes."""
        text = self.text
        for change in self.changes[:count]:
            text = change.apply(text)
        return text


def read_stories(path: Path | None = None) -> tuple[Story, ...]:
    """The committed held-out stories, or those at `path`: JSON lines, compressed with zstandard.

    Raises:
        BenchDataError: the file is absent or not what it should be.
    """
    source = path if path is not None else HELDOUT_EDITS
    try:
        with source.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as plain:
            return tuple(_story(line, source) for line in io.TextIOWrapper(plain, encoding="utf-8", newline="\n"))
    except FileNotFoundError as error:
        raise BenchDataError(f"{source} does not exist; it holds stories of edits") from error
    except (zstandard.ZstdError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        raise BenchDataError(f"{source} is damaged: {error!r}") from error


def composed(length: int, changes: Sequence[Change]) -> tuple[Change, ...]:
    """Changes made one behind the other, as changes of the text of `length` before the first: sorted, not touching.

    Changes of one place, or of neighbouring ones, become one.
    """
    # Where each character of the text so far comes from; a string is one that was written.
    origin: list[int | str] = list(range(length))
    for change in changes:
        origin[change.start : change.end] = list(change.text)
    found: list[Change] = []
    at, written = 0, ""
    for each in (*origin, length):
        if isinstance(each, str):
            written += each
            continue
        if written or each > at:
            found.append(Change(at, each, written))
        at, written = each + 1, ""
    return tuple(found)


def _story(line: str, source: Path) -> Story:
    row = json.loads(line)
    changes = tuple(Change(int(start), int(end), str(text)) for start, end, text in row["changes"])
    story = Story(str(row["kind"]), str(row["language"]), str(row["path"]), str(row["text"]), changes)
    length = len(story.text)
    for change in changes:
        if not 0 <= change.start <= change.end <= length:
            raise BenchDataError(f"{source} has a change outside of its text: {story.path}, {story.kind}")
        length += len(change.text) - (change.end - change.start)
    return story
