"""Real edits: what people changed in a file between two releases of its package, or by one small commit."""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from calomel.training.corpus.build import Extraction, extract
from calomel.training.corpus.cleaning import LANGUAGES, language_of, path_fault, text_fault
from calomel.training.corpus.licenses import refuse_header
from calomel.training.corpus.packages import (
    Archive,
    ArchiveCache,
    ArchiveError,
    LicenseError,
    Package,
    PackageListError,
    load_packages,
)
from calomel.training.corpus.repositories import Objects, git
from calomel.training.corpus.shards import SourceFile
from calomel.training.edits.differences import (
    MAX_HUNKS,
    LineHunk,
    NamedHunk,
    definition_first,
    intents,
    is_formatting,
    line_hunks,
    named,
    replaced_names,
)
from calomel.training.edits.naming import keywords
from calomel.training.edits.scene import marker
from calomel.training.edits.source import Source
from calomel.training.edits.story import REACH, Change, Story, crop, sequential

DEFAULT_RELEASES = Path(__file__).with_name("releases.toml")
# Of the packages of `CALIBRATION_LIST`.
CALIBRATION_RELEASES = Path(__file__).with_name("calibration.toml")
DEFAULT_RELEASES_LOCK = Path(__file__).with_name("releases.lock.json")

# Debian's folder of a crate, and some of Go's, carry the version.
_VERSION = re.compile(r"-v?\d+(?:\.\d+)+[^/]*(?=/)")


@dataclass(frozen=True, slots=True)
class Release:
    """An archive and what of it may be used."""

    archive: Archive
    extraction: Extraction


@dataclass(frozen=True, slots=True)
class ReleasePair:
    """Two releases of one package."""

    older: Release
    newer: Release

    @property
    def package(self) -> Package:
        """The later package."""
        return self.newer.archive.package

    def files(self) -> Iterator[tuple[SourceFile, SourceFile]]:
        """Yield the files that both releases have, older and newer, by path."""
        older = {_stem(file.path): file for file in self.older.extraction.files}
        for file in sorted(self.newer.extraction.files, key=lambda file: file.path):
            if before := older.get(_stem(file.path)):
                yield before, file


def paired(packages: Path, releases: Path) -> tuple[tuple[Package, Package], ...]:
    """Read both lists and return each listed earlier release with the package it belongs to, held-out ones first.

    Raises PackageListError when a release belongs to no package, or is held out on one side alone.
    """
    newer = {(package.ecosystem, package.name): package for package in load_packages(packages)}
    pairs = []
    for older in load_packages(releases):
        package = newer.get((older.ecosystem, older.name))
        if package is None:
            raise PackageListError(f"{older.key}: no such package in {packages.name}")
        if package.held_out != older.held_out:
            raise PackageListError(f"{older.key}: held out in one of {packages.name} and {releases.name} alone")
        if package.version == older.version:
            raise PackageListError(f"{older.key}: the same version as in {packages.name}")
        pairs.append((older, package))
    return tuple(sorted(pairs, key=lambda pair: not pair[1].held_out))


def fetch_pair(older: Package, newer: Package, earlier: ArchiveCache, later: ArchiveCache, seed: int) -> ReleasePair:
    """Fetch and read both releases; each is checked against the lock file of its own list.

    Raises FetchError, ArchiveError or LicenseError as `fetch` and `extract` do.
    """
    old, new = earlier.fetch(older), later.fetch(newer)
    return ReleasePair(Release(old, extract(old, seed)), Release(new, extract(new, seed)))


def _stem(path: str) -> str:
    return _VERSION.sub("", path)


RELEASE = "release"
# A file that was changed in more places, or by more of its lines, was rewritten: no single intent is left in it.
MAX_FILE_HUNKS = 120
MAX_CHANGED = 0.6
# Characters and lines of a hunk that somebody may be expected to foresee. A longer one is done before the story begins.
MAX_HUNK_CHARACTERS = 1_200
MAX_HUNK_LINES = 24
MAX_CHANGES = 24
# Stories of one file, so that a large one does not set the style of the whole.
MAX_STORIES = 8

_DIGITS = re.compile(r"\d+")
_LEGAL = re.compile(r"copyright|licen[cs]e|SPDX", re.IGNORECASE)
_COMMENT = re.compile(r"^\s*(?:#|//|/?\*)", re.MULTILINE)


def release_stories(older: Source, newer: Source, dropped: Counter[str]) -> Iterator[Story]:
    """Yield the intents between two versions of a file, each beginning where the one before has ended.

    What belongs to no intent (comments, formatting, long new code, a version's number) is already done in all of
    their texts. Why things are left out is counted in `dropped`. The texts are whole: nothing is cropped here.
    """
    fault = _file_fault(older, newer)
    hunks = () if fault else line_hunks(older.text, newer.text)
    if not fault and (len(hunks) > MAX_FILE_HUNKS or _share(hunks, older.text) > MAX_CHANGED):
        fault = "release: rewritten file"
    if fault:
        dropped[fault] += 1
        return
    groups = _groups(hunks, older, newer, dropped)
    waiting = {hunk.before_start for group in groups for hunk in group}
    for group in groups:
        text, moved = state_of(older.text, hunks, waiting)
        edits = [Change(c.start + moved[h], c.end + moved[h], c.text) for h in group for c in h.changes()]
        waiting.difference_update(hunk.before_start for hunk in group)
        fault = _group_fault(edits)
        if fault is None and (newer.with_text(text).has_error or _result(newer, text, edits).has_error):
            fault = "release: does not parse on its own"
        if fault:
            dropped[fault] += 1
            continue
        yield Story(RELEASE, newer.language, newer.path, text, sequential(edits))


def _file_fault(older: Source, newer: Source) -> str | None:
    if older.text == newer.text:
        return "release: unchanged file"
    if older.has_error or newer.has_error:
        return "release: file does not parse"
    return None


def _share(hunks: Sequence[LineHunk], text: str) -> float:
    return sum(len(hunk.before) for hunk in hunks) / max(1, len(text))


def _groups(
    hunks: Sequence[LineHunk], older: Source, newer: Source, dropped: Counter[str]
) -> list[tuple[LineHunk, ...]]:
    """Return the intents among the hunks, at most MAX_STORIES, by position of their first hunk."""
    before, after = _Names(older), _Names(newer)
    telling: list[NamedHunk] = []
    for hunk in hunks:
        if fault := hunk_fault(hunk):
            dropped[f"release: {fault}"] += 1
            continue
        old_names = before.between(hunk.before_start, hunk.before_end)
        telling.append(named(hunk, old_names, after.between(hunk.after_start, hunk.after_end)))
    groups = [tuple(part.hunk for part in group) for group in intents(telling)]
    taken = {hunk for group in groups for hunk in group}
    groups += [(h.hunk,) for h in telling if h.hunk not in taken and h.removed and replaced_names(h.hunk)]
    dropped["release: hunk of no intent"] += len(telling) - sum(map(len, groups))
    dropped["release: over cap of file"] += max(0, len(groups) - MAX_STORIES)
    return sorted(groups[:MAX_STORIES], key=lambda group: group[0].before_start)


def hunk_fault(hunk: LineHunk) -> str | None:
    """Return why nobody could foresee a hunk, or None."""
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


def _group_fault(edits: Sequence[Change]) -> str | None:
    if len(edits) > MAX_CHANGES:
        return "release: too many changes"
    if max(edit.end for edit in edits) - min(edit.start for edit in edits) > REACH:
        return "release: too far apart"
    return None


def state_of(text: str, hunks: Sequence[LineHunk], waiting: Collection[int]) -> tuple[str, dict[LineHunk, int]]:
    """Return the text with all hunks done but the waiting ones, and by how much each hunk has moved in it."""
    parts: list[str] = []
    moved: dict[LineHunk, int] = {}
    end = shift = 0
    for hunk in hunks:
        moved[hunk] = shift
        if hunk.before_start in waiting:
            continue
        parts += [text[end : hunk.before_start], hunk.after]
        end = hunk.before_end
        shift += len(hunk.after) - len(hunk.before)
    return "".join([*parts, text[end:]]), moved


def _result(source: Source, text: str, edits: Sequence[Change]) -> Source:
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = edit.apply(text)
    return source.with_text(text)


class _Names:
    """The names in the code of a file, by place; words of comments and strings are none."""

    def __init__(self, source: Source) -> None:
        nodes = source.identifiers()
        self._starts = [source.offset(node.start_byte) for node in nodes]
        self._names = [source.slice(node) for node in nodes]

    def between(self, start: int, end: int) -> list[str]:
        return self._names[bisect_left(self._starts, start) : bisect_left(self._starts, end)]


COMMIT = "commit"
# The newest of a repository: older ones are written in a style that has passed.
MAX_COMMITS = 20_000
# A commit that changes more source files does the same everywhere, or many things at once.
MAX_FILES = 12
# Stories of one file of a repository, so that a busy one does not set the style of the whole.
MAX_OF_FILE = 40
# Share of a story's hunks that change a name which another of its hunks changes too.
MIN_TIED = 0.5
# Of the longer side of a hunk: less than between releases, of which each hunk shares a name with another.
MAX_COMMIT_LINES = 10
# Bytes. The changes in larger files lie too far apart, and parsing takes long.
MAX_BYTES = 50_000

_MECHANICAL = re.compile(
    r"\[bot\]|\b(?:revert(?:s|ed)?|merge[ds]?|cherry.?pick(?:ed)?|backport(?:s|ed)?|bump(?:s|ed)?|release[ds]?"
    r"|copyrights?|licen[cs]es?|vendor(?:ed|ing)?|re-?generate[ds]?|codegen|generated|white ?spaces?|re-?formatt?\w*"
    r"|code style|black|isort|pyupgrade|prettier|eslint|gofmt|gofumpt|rustfmt|cargo fmt|pre-commit|lint(?:er|ing)?)\b",
    re.IGNORECASE,
)
_SUFFIXES = tuple(LANGUAGES)
_WORD = re.compile(r"[^\W\d]\w*")


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
    telling = [hunk for hunk in hunks if hunk_fault(hunk) is None and _lines(hunk) <= MAX_COMMIT_LINES]
    if 2 * len(telling) < len(hunks) or not telling:
        return "nothing to foresee"
    if len(telling) > MAX_HUNKS:
        return "many hunks"
    if len(telling) == 1 and not replaced_names(telling[0]):
        return "one change"
    parts = [_named_unparsed(hunk, newer.language) for hunk in telling]
    if len(parts) > 1 and sum(map(len, intents(parts))) < MIN_TIED * len(parts):
        return "no intent"
    text, moved = state_of(older.text, hunks, {hunk.before_start for hunk in telling})
    ordered = [part.hunk for part in definition_first(parts)]
    changes = [Change(c.start + moved[h], c.end + moved[h], c.text) for h in ordered for c in h.changes()]
    if len(changes) > MAX_CHANGES:
        return "too many changes"
    return Story(COMMIT, newer.language, newer.path, text, sequential(changes))


def _header_fault(text: str) -> str | None:
    try:
        refuse_header(text)
    except LicenseError:
        return "license"
    return None


def _lines(hunk: LineHunk) -> int:
    return max(hunk.before.count("\n"), hunk.after.count("\n"))


def _named_unparsed(hunk: LineHunk, language: str) -> NamedHunk:
    """Return the hunk with the changed names of its code, as far as they can be told without parsing."""
    comment = re.compile(rf"{marker(language)}.*")
    reserved = keywords(language)
    names = [
        [name for name in _WORD.findall(comment.sub("", text)) if name not in reserved]
        for text in (hunk.before, hunk.after)
    ]
    return named(hunk, *names)
