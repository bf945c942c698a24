"""Real edits: what people changed in a file with one small commit, hunk by hunk."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby
from pathlib import Path

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

from calomel.code.languages import builtin_names, line_comment
from calomel.prompts.parts import Edit, changed_span
from calomel.training.corpus.cleaning import LANGUAGES, language_of, path_fault, text_fault
from calomel.training.corpus.licenses import header_fault
from calomel.training.corpus.packages import ArchiveError
from calomel.training.corpus.repositories import git, objects
from calomel.training.edits.story import COMMIT, WORDS, Source, Story, crop, story_of

# Percent. Less similar lines were not made from one another.
ALIKE = 50.0

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_TRAILING_COMMA = re.compile(r",(?=[)\]}])")


@dataclass(frozen=True, slots=True)
class LineHunk:
    """Consecutive whole lines that were replaced; offsets are characters of the older text."""

    before_start: int
    before_end: int
    before: str
    after: str

    def changes(self) -> tuple[Edit, ...]:
        """Return the hunk in offsets of the text before: one change, or one per place of a renamed name."""
        before, after = _TOKEN.findall(self.before), _TOKEN.findall(self.after)
        pairs = list(zip(before, after, strict=False))
        differing = {(old, new) for old, new in pairs if old != new}
        if len(before) == len(after) and len(differing) == 1 and all(_is_name(*names) for names in differing):
            return tuple(self._replaced(pairs))
        return (self._trimmed(before, after),)

    def renames(self) -> bool:
        """Tell whether it only replaces one name by another, more than once."""
        changes = self.changes()
        olds = {self.before[c.start - self.before_start : c.end - self.before_start] for c in changes}
        return len(changes) > 1 and len(olds) == 1

    def _replaced(self, pairs: list[tuple[str, str]]) -> Iterator[Edit]:
        offset = self.before_start
        for old, new in pairs:
            if old != new:
                yield Edit(offset, offset + len(old), new)
            offset += len(old)

    def _trimmed(self, before: list[str], after: list[str]) -> Edit:
        head, end, new_end = changed_span(before, after)
        start = self.before_start + sum(map(len, before[:head]))
        return Edit(start, self.before_end - sum(map(len, before[end:])), "".join(after[head:new_end]))


def line_hunks(before: str, after: str) -> tuple[LineHunk, ...]:
    """Return the hunks that turn `before` into `after`, top to bottom; as many lines as possible stay.

    A run of lines replaced by as many similar lines is one hunk per line, as a person would change them.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = list(accumulate(map(len, old), initial=0))
    hunks: list[LineHunk] = []
    for span in _replaced_runs(old, new):
        for a, b, c, d in _by_line(old, new, span):
            hunks.append(LineHunk(starts[a], starts[b], "".join(old[a:b]), "".join(new[c:d])))
    return tuple(hunks)


def is_formatting(hunk: LineHunk) -> bool:
    """Tell whether only whitespace, quotes or a trailing comma differ."""
    return _bare(hunk.before) == _bare(hunk.after)


def _bare(text: str) -> str:
    return _TRAILING_COMMA.sub("", "".join(text.split()).replace("'", '"'))


_Span = tuple[int, int, int, int]


def _replaced_runs(old: list[str], new: list[str]) -> Iterator[_Span]:
    """Yield each replaced run of lines: its start and end in `old`, then in `new`."""
    i = j = 0
    for block in LCSseq.editops(old, new).as_matching_blocks():
        if (block.a, block.b) != (i, j):
            yield i, block.a, j, block.b
        i, j = block.a + block.size, block.b + block.size


def _by_line(old: list[str], new: list[str], span: _Span) -> Iterator[_Span]:
    """Yield a replaced run line by line if it has as many lines and most are similar; any other as it is."""
    i, i_end, j, j_end = span
    alike = list(map(_alike, old[i:i_end], new[j:j_end]))
    if i_end - i != j_end - j or 2 * sum(alike) < len(alike):
        yield span
        return
    for same, run in groupby(range(len(alike)), alike.__getitem__):
        lines = list(run)
        for part in [[line] for line in lines] if same else [lines]:
            yield i + part[0], i + part[-1] + 1, j + part[0], j + part[-1] + 1


def _alike(old: str, new: str) -> bool:
    return bool(old.strip()) and fuzz.ratio(old, new) >= ALIKE


def _is_name(old: str, new: str) -> bool:
    return old.isidentifier() and new.isidentifier()


# A name changed in more hunks than this connects unrelated changes.
MAX_HUNKS = 12
MIN_NAME = 3
# Names that are common in all code say nothing about an intent.
_COMMON = frozenset(WORDS["common_names"].split())
_WORD = re.compile(r"[^\W\d]\w*")
# What follows a keyword is in a look-ahead, as it may be another keyword: `const fn name`.
_DEFINITIONS = (
    re.compile(
        r"\b(?:def|class|function|func|fn|const|let|var|static|struct|enum|type|interface|trait|mod|macro_rules!)"
        r"(?=\s+(?:\([^()]*\)\s*)?(?:mut\s+)?(\w+))"
    ),
    re.compile(
        r"^\s*(?:(?:(?:pub|public|private|protected|readonly)\b|self\.)\s*)*(\w+)\s*(?::(?!=)|=(?!=)|:=)", re.MULTILINE
    ),
    # A field of Go: name, type, tag.
    re.compile(r"^\s*(\w+)[ \t]+[*\[\]\w.]+[ \t]*(?:`[^`]*`)?$", re.MULTILINE),
)
_PARAMETERS = re.compile(r"\b(?:def|fn|func|function)\s+\w+[^\n(]*(\([^\n]*)")
_PARAMETER = re.compile(r"[(,\s](\w+)")


def intents(hunks: Sequence[LineHunk], language: str) -> Iterator[tuple[LineHunk, ...]]:
    """Yield groups of 2 to MAX_HUNKS hunks that share changed names: where one is defined first, then top to bottom."""
    holders: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for index, hunk in enumerate(hunks):
        before, after = (Counter(_names(text, language)) for text in (hunk.before, hunk.after))
        for sign, names in (("-", before - after), ("+", after - before)):
            for name in sorted(names):
                holders[sign, name].append(index)
    shared = {key: set(at) for key, at in holders.items() if 1 < len(at) <= MAX_HUNKS}
    groups: list[set[int]] = []
    for tied in sorted(shared.values(), key=len, reverse=True):
        joined = tied.union(*(group for group in groups if group & tied))
        # A name that would make too large a group is ignored.
        if len(joined) <= MAX_HUNKS:
            groups = [joined, *(group for group in groups if not group & tied)]
    for group in groups:
        part = [hunks[index] for index in sorted(group)]
        tying = {name for (_, name), tied in shared.items() if len(group & tied) > 1}
        first = next((hunk for hunk in part if not tying.isdisjoint(_defined(hunk.after))), part[0])
        yield first, *(hunk for hunk in part if hunk is not first)


def _names(text: str, language: str) -> list[str]:
    """Return the distinctive names of some lines, as far as they can be found without parsing."""
    code = re.sub(rf"{line_comment(language)}.*", "", text)
    reserved = _COMMON.union(builtin_names(language, None) or ())
    return [name for name in _WORD.findall(code) if len(name) >= MIN_NAME and name not in reserved]


def _defined(text: str) -> Iterator[str]:
    """Yield the names that lines of code define: of functions, types and values, fields and parameters."""
    for definition in _DEFINITIONS:
        yield from definition.findall(text)
    for parameters in _PARAMETERS.findall(text):
        yield from _PARAMETER.findall(parameters)


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
