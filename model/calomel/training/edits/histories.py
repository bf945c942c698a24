"""Real edits: what people changed in a file with one small commit."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from calomel.prompts.parts import Edit
from calomel.training.corpus.cleaning import LANGUAGES, language_of, path_fault, text_fault
from calomel.training.corpus.licenses import header_fault
from calomel.training.corpus.packages import ArchiveError
from calomel.training.corpus.repositories import git, objects
from calomel.training.edits.differences import LineHunk, intents, is_formatting, line_hunks
from calomel.training.edits.source import Source
from calomel.training.edits.story import Story, crop, story_of

COMMIT = "commit"
# A file changed in more places, or in more of its characters, was rewritten: it has no single intent left.
MAX_FILE_HUNKS = 120
MAX_CHANGED = 0.6
# Characters and lines of a hunk that can be predicted at all. A longer one is applied before the story begins.
MAX_HUNK_CHARACTERS = 1_200
MAX_HUNK_LINES = 10
MAX_CHANGES = 24
# Stories per file, so that a large one does not dominate the style.
MAX_STORIES = 8

_DIGITS = re.compile(r"\d+")
_LEGAL = re.compile(r"copyright|licen[cs]e|SPDX", re.IGNORECASE)
_COMMENT = re.compile(r"^\s*(?:#|//|/?\*)", re.MULTILINE)


def stories_between(older: Source, newer: Source, dropped: Counter[str]) -> Iterator[Story]:
    """Yield the intents between two versions of a file, each beginning where the previous one ended.

    What belongs to no intent (comments, formatting, long new code, a version number) is already applied in all of their
    texts. The reasons for leaving things out are counted in `dropped`. The texts are whole: nothing is cropped here.
    """
    hunks = line_hunks(older.text, newer.text)
    if len(hunks) > MAX_FILE_HUNKS or sum(len(hunk.before) for hunk in hunks) > MAX_CHANGED * len(older.text):
        dropped["commit: rewritten file"] += 1
        return
    groups = _groups(hunks, newer.language, dropped)
    waiting = {hunk for group in groups for hunk in group}
    for group in groups:
        text, moved = _state(older.text, hunks, waiting)
        edits = [Edit(c.start + moved[h], c.end + moved[h], c.text) for h in group for c in h.changes()]
        waiting.difference_update(group)
        story = story_of(COMMIT, newer.with_text(text), edits) if len(edits) <= MAX_CHANGES else None
        if story is None:
            dropped["commit: depends on other changes"] += 1
        else:
            yield story


def _groups(hunks: Sequence[LineHunk], language: str, dropped: Counter[str]) -> list[tuple[LineHunk, ...]]:
    """Return the intents among the hunks, at most MAX_STORIES, by position of their first hunk."""
    faults = {hunk: hunk_fault(hunk) for hunk in hunks}
    dropped.update(f"commit: {fault}" for fault in faults.values() if fault)
    telling = [hunk for hunk in hunks if faults[hunk] is None]
    groups = list(intents(telling, language))
    taken = {hunk for group in groups for hunk in group}
    groups += [(hunk,) for hunk in telling if hunk not in taken and hunk.renames()]
    dropped["commit: hunk of no intent"] += len(telling) - sum(map(len, groups))
    dropped["commit: over cap of file"] += max(0, len(groups) - MAX_STORIES)
    return sorted(groups[:MAX_STORIES], key=lambda group: group[0].before_start)


def hunk_fault(hunk: LineHunk) -> str | None:
    """Return why a hunk is unpredictable, or None."""
    if is_formatting(hunk):
        return "formatting hunk"
    if max(len(hunk.before), len(hunk.after)) > MAX_HUNK_CHARACTERS:
        return "long hunk"
    if max(hunk.before.count("\n"), hunk.after.count("\n")) > MAX_HUNK_LINES:
        return "long hunk"
    both = hunk.before + hunk.after
    if _LEGAL.search(both) and _COMMENT.search(both):
        return "licence header"
    if "version" in both.lower() and _DIGITS.sub("0", hunk.before) == _DIGITS.sub("0", hunk.after):
        return "version's number"
    return None


def _state(text: str, hunks: Sequence[LineHunk], waiting: Collection[LineHunk]) -> tuple[str, dict[LineHunk, int]]:
    """Return the text with all hunks applied but the waiting ones, and how far each hunk has moved in it."""
    parts: list[str] = []
    moved: dict[LineHunk, int] = {}
    end = shift = 0
    for hunk in hunks:
        moved[hunk] = shift
        if hunk in waiting:
            continue
        parts += [text[end : hunk.before_start], hunk.after]
        end = hunk.before_end
        shift += len(hunk.after) - len(hunk.before)
    return "".join([*parts, text[end:]]), moved


# The newest of a repository: older ones are in an outdated style.
MAX_COMMITS = 20_000
# A commit that changes more source files does the same everywhere, or many things at once.
MAX_FILES = 12
# Stories per file of a repository, so that a busy one does not dominate the style.
MAX_OF_FILE = 40
# Bytes. The changes in larger files are too far apart, and parsing takes long.
MAX_BYTES = 50_000

_MECHANICAL = re.compile(
    r"\[bot\]|\b(?:revert(?:s|ed)?|merge[ds]?|cherry.?pick(?:ed)?|backport(?:s|ed)?|bump(?:s|ed)?|release[ds]?"
    r"|copyrights?|licen[cs]es?|vendor(?:ed|ing)?|re-?generate[ds]?|codegen|generated|white ?spaces?|re-?formatt?\w*"
    r"|code style|black|isort|pyupgrade|prettier|eslint|gofmt|gofumpt|rustfmt|cargo fmt|pre-commit|lint(?:er|ing)?)\b",
    re.IGNORECASE,
)
_SUFFIXES = tuple(LANGUAGES)


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that a commit changes; `older` and `newer` are the ids of its texts in the clone."""

    path: str
    language: str
    older: str
    newer: str


def file_changes(clone: Path, commit: str, dropped: Counter[str]) -> Iterator[FileChange]:
    """Yield the changes of source files in small commits up to `commit`, newest first; merges change nothing.

    The reasons for leaving out commits and files are counted in `dropped`. Raises FetchError if git fails.
    """
    shown = ("--no-merges", "--raw", "--no-abbrev", "--no-renames", "--format=%x00%ae %s")
    log = git(clone, "log", f"--max-count={MAX_COMMITS}", *shown, commit).decode("utf-8", errors="replace")
    for entry in log.split("\0")[1:]:
        head, *lines = entry.split("\n")
        files = [line[1:].split("\t") for line in lines if line.startswith(":") and line.endswith(_SUFFIXES)]
        if fault := _commit_fault(head, len(files)):
            dropped[f"commit: {fault}"] += 1
            continue
        for facts, path in files:
            old_mode, mode, older, newer, status = facts.split()
            language = language_of(path)
            if status == "M" and language and old_mode.startswith("100") and mode.startswith("100"):
                yield FileChange(path, language, older, newer)


def _commit_fault(head: str, files: int) -> str | None:
    if not files:
        return "no source file"
    if files > MAX_FILES:
        return "many files"
    return "mechanical" if _MECHANICAL.search(head) else None


class Teller:
    """Makes the stories of one clone."""

    def __init__(self, clone: Path, fault: Callable[[str], str | None], dropped: Counter[str], seed: int) -> None:
        """Nothing is read yet.

        Args:
            clone: a bare repository.
            fault: returns why a text must not be trained on, or None.
            dropped: counts why there are no stories.
            seed: decides where they are cropped.
        """
        self._clone = clone
        self._fault = fault
        self._dropped = dropped
        self._seed = seed
        self._told: Counter[str] = Counter()
        # Per file, by path.
        self._faults: dict[str, str | None] = {}

    def stories(self, commit: str, wanted: Callable[[FileChange], bool]) -> Iterator[Story]:
        """Yield the stories of `wanted` changes, cropped, those of the newest commits first.

        Raises FetchError if git fails.
        """
        with objects(self._clone) as read_object:
            # The older text of a commit is the newer one of an earlier commit.
            read = lru_cache(maxsize=1_000)(read_object)
            for change in file_changes(self._clone, commit, self._dropped):
                for story in self._stories(change, read) if wanted(change) else ():
                    if isinstance(story, str):
                        self._dropped[f"commit: {story}"] += 1
                    else:
                        self._told[story.path] += 1
                        yield story

    def _stories(self, change: FileChange, read: Callable[[str], bytes]) -> Iterator[Story | str]:
        """Yield the stories of a change, or why there are none."""
        if self._told[change.path] >= MAX_OF_FILE:
            yield "over cap of file"
            return
        if fault := self._faults.get(change.path) or path_fault(change.path):
            yield fault
            return
        try:
            before, after = read(change.older), read(change.newer)
            if max(len(before), len(after)) > MAX_BYTES:
                self._faults[change.path] = "large file"
                yield "large file"
                return
            older, newer = (Source(change.path, change.language, content.decode()) for content in (before, after))
        except ArchiveError:
            yield "not in the clone"
            return
        except UnicodeDecodeError:
            yield "not UTF-8"
            return
        for story in stories_between(older, newer, self._dropped):
            cropped = crop(story, random.Random(f"{self._seed}:{change.newer}"))
            yield "too far apart" if cropped is None else self._text_fault(cropped, newer) or cropped

    def _text_fault(self, story: Story, newer: Source) -> str | None:
        """Return why a story must not be trained on, by its file's newest version and by the text that it writes."""
        if story.path not in self._faults:
            fault = text_fault(story.path, newer.text.encode("utf-8", "surrogatepass")) or self._fault(newer.text)
            self._faults[story.path] = fault or header_fault(newer.text)
        if fault := self._faults[story.path]:
            return fault
        text = "\n".join([story.text, *(change.text for change in story.changes)])
        return text_fault(story.path, text.encode()) or self._fault(text)
