"""Real edits: what people changed in a file by one small commit, hunk by hunk."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from calomel.training.corpus.cleaning import LANGUAGES, language_of, path_fault, text_fault
from calomel.training.corpus.errors import ArchiveError, LicenseError
from calomel.training.corpus.licenses import refuse_header
from calomel.training.corpus.repositories import Objects, git
from calomel.training.edits.aimless import marker
from calomel.training.edits.differences import LineHunk, line_hunks
from calomel.training.edits.intents import MAX_HUNKS, NamedHunk, definition_first, intents, named, replaced_names
from calomel.training.edits.naming import keywords
from calomel.training.edits.releases import hunk_fault, state_of
from calomel.training.edits.source import Source
from calomel.training.edits.stories import crop
from calomel.training.edits.story import Change, Story, sequential

KIND = "commit"
# The newest of a repository: older ones are written in a style that has passed.
MAX_COMMITS = 20_000
# A commit that changes more source files does the same everywhere, or many things at once.
MAX_FILES = 12
# Stories of one file of a repository, so that a busy one does not set the style of the whole.
MAX_OF_FILE = 40
# Share of a story's hunks that change a name which another of its hunks changes too.
MIN_TIED = 0.5
MAX_CHANGES = 24
# Of the longer side of a hunk: less than between releases, of which each hunk shares a name with another.
MAX_HUNK_LINES = 10
# Bytes. The changes in larger files lie too far apart, and parsing takes long.
MAX_BYTES = 50_000

_MECHANICAL = re.compile(
    r"\[bot\]|\b(?:revert(?:s|ed)?|merge[ds]?|cherry.?pick(?:ed)?|backport(?:s|ed)?|bump(?:s|ed)?|release[ds]?"
    r"|copyrights?|licen[cs]es?|vendor(?:ed|ing)?|re-?generate[ds]?|codegen|generated|white ?spaces?|re-?formatt?\w*"
    r"|code style|black|isort|pyupgrade|prettier|eslint|gofmt|gofumpt|rustfmt|cargo fmt|pre-commit|lint(?:er|ing)?)\b",
    re.IGNORECASE,
)
_SUFFIXES = tuple(LANGUAGES)
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that a commit changes; `older` and `newer` are the ids of its texts in the clone."""

    path: str
    language: str
    older: str
    newer: str


def file_changes(clone: Path, commit: str, dropped: Counter[str]) -> Iterator[FileChange]:
    """Yield what small commits before and at `commit` change in source files, newest first; merges change nothing.

    Why commits and files are left out is counted in `dropped`. Raises FetchError when git fails.
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
    """Tells the stories of one clone."""

    def __init__(self, clone: Path, fault: Callable[[str], str | None], dropped: Counter[str], seed: int) -> None:
        """Nothing is read yet.

        Args:
            clone: a bare repository.
            fault: why a text shall not be trained on, or None.
            dropped: counts why there are no stories.
            seed: decides where they are cropped.
        """
        self._clone = clone
        self._fault = fault
        self._dropped = dropped
        self._seed = seed
        self._told: Counter[str] = Counter()
        # Of each file, by path.
        self._faults: dict[str, str | None] = {}

    def stories(self, commit: str, wanted: Callable[[FileChange], bool]) -> Iterator[Story]:
        """Yield the stories of `wanted` changes, cropped, those of the newest commits first.

        Raises FetchError when git fails.
        """
        with Objects(self._clone) as objects:
            # The older text of a commit is the newer one of an earlier commit.
            read = lru_cache(maxsize=1_000)(objects.read)
            for change in file_changes(self._clone, commit, self._dropped):
                if not wanted(change):
                    continue
                story = self._file_fault(change) or self._story(change, read)
                if isinstance(story, str):
                    self._dropped[f"commit: {story}"] += 1
                else:
                    self._told[story.path] += 1
                    yield story

    def _story(self, change: FileChange, read: Callable[[str], bytes]) -> Story | str:
        """Return the story of a change, or why there is none."""
        try:
            before, after = read(change.older), read(change.newer)
        except ArchiveError:
            return "not in the clone"
        if max(len(before), len(after)) > MAX_BYTES:
            self._faults[change.path] = "large file"
            return "large file"
        try:
            older, newer = (Source(change.path, change.language, content.decode()) for content in (before, after))
        except UnicodeDecodeError:
            return "not UTF-8"
        story = commit_story(older, newer)
        if isinstance(story, str):
            return story
        cropped = crop(story, random.Random(f"{self._seed}:{change.newer}"))
        if cropped is None:
            return "too far apart"
        fault = self._text_fault(cropped, newer)
        if fault is None and newer.has_error:
            fault = "does not parse"
        # What was done before the story has to be right on its own.
        if fault is None and story.text != older.text and older.with_text(story.text).has_error:
            fault = "does not parse on its own"
        return fault or cropped

    def _file_fault(self, change: FileChange) -> str | None:
        if self._told[change.path] >= MAX_OF_FILE:
            return "over cap of file"
        if change.path not in self._faults and (fault := path_fault(change.path)):
            self._faults[change.path] = fault
        return self._faults.get(change.path)

    def _text_fault(self, story: Story, newer: Source) -> str | None:
        """Return why a story shall not be trained on, by its file's newest version and by what is written of it."""
        if story.path not in self._faults:
            fault = text_fault(story.path, newer.encoded) or self._fault(newer.text)
            self._faults[story.path] = fault or _header_fault(newer.text)
        if fault := self._faults[story.path]:
            return fault
        text = "\n".join([story.text, *(change.text for change in story.changes)])
        return text_fault(story.path, text.encode()) or self._fault(text)


def commit_story(older: Source, newer: Source) -> Story | str:
    """Return what a commit changed in a file as one story, or why it is none. Nothing is parsed or cropped here.

    All hunks belong to it, but for those that nobody could foresee (formatting, long new code, a licence, a version's
    number): they are done before. One that defines a name which others change comes first, then from top to bottom.
    """
    hunks = line_hunks(older.text, newer.text, fewest=True)
    telling = [hunk for hunk in hunks if hunk_fault(hunk) is None and _lines(hunk) <= MAX_HUNK_LINES]
    if 2 * len(telling) < len(hunks) or not telling:
        return "nothing to foresee"
    if len(telling) > MAX_HUNKS:
        return "many hunks"
    if len(telling) == 1 and not replaced_names(telling[0]):
        return "one change"
    parts = [_named(hunk, newer.language) for hunk in telling]
    if len(parts) > 1 and sum(map(len, intents(parts))) < MIN_TIED * len(parts):
        return "no intent"
    text, moved = state_of(older.text, hunks, {hunk.before_start for hunk in telling})
    ordered = [part.hunk for part in definition_first(parts)]
    changes = [Change(c.start + moved[h], c.end + moved[h], c.text) for h in ordered for c in h.changes()]
    if len(changes) > MAX_CHANGES:
        return "too many changes"
    return Story(KIND, newer.language, newer.path, text, sequential(changes))


def _header_fault(text: str) -> str | None:
    try:
        refuse_header(text)
    except LicenseError:
        return "license"
    return None


def _lines(hunk: LineHunk) -> int:
    return max(hunk.before.count("\n"), hunk.after.count("\n"))


def _named(hunk: LineHunk, language: str) -> NamedHunk:
    """Return the hunk with the changed names of its code, as far as they can be told without parsing."""
    comment = re.compile(rf"{marker(language)}.*")
    reserved = keywords(language)
    names = [
        [name for name in _NAME.findall(comment.sub("", text)) if name not in reserved]
        for text in (hunk.before, hunk.after)
    ]
    return named(hunk, *names)
