"""A repository's history as editing logs, one per commit: an approximation, to be read with care.

A commit does not record typing errors, abandoned attempts, order or pauses, so neither does its log. So suggestions
look better here than in a recording. Left out, each with its reason: merges, reverts, commits by programs, huge ones;
and in the others, files that nobody types: lock files, generated and vendored ones, those where only formatting
changed.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Final

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

from calomel.code.lines import split_lines
from calomel.prompts.parts import Edit, changed_span
from calomel.replay.events import (
    Changed,
    Checks,
    Event,
    Focused,
    LogError,
    Opened,
    Problem,
    ReplayLog,
    Selected,
    apply_edits,
    language_of,
)
from calomel.workspace.privacy import content_refusal, generated_by_name

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
    starts = list(accumulate(map(len, old), initial=0))
    found: list[Hunk] = []
    # The common prefix and suffix are most of a file.
    head, end, new_end = changed_span(old, new)
    first, last = old[head:end], new[head:new_end]
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
    head, end, new_end = changed_span(old, new)
    if end > head:
        yield Stroke(Edit(at + head, at + end, ""), LINE_SECONDS)
    yield from typed(new[head:new_end], at + head, chance)


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


_PLAIN_FILE: Final = "100"
# No pager, no monitor, no hook, no fetching of missing objects.
_OPTIONS: Final = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")
_ENVIRONMENT: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}
_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: its hash, its parents' hashes, its author, and its first line."""

    name: str
    parents: tuple[str, ...]
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that a commit changed.

    Attributes:
        path: after the commit; of a removed file, before it.
        status: git's letter: `A`dded, `M`odified, `D`eleted, `R`enamed, `T`ype changed.
        before, after: the blobs' names; empty when there is none.
        plain: both are regular files, not links or submodules.
    """

    path: str
    status: str
    before: str
    after: str
    plain: bool


class Repository:
    """Reads commits.

    Raises:
        LogError: the folder is not a repository, or git is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._run("rev-parse", "--git-dir")

    def commits(self, count: int) -> list[Commit]:
        """The newest commits, newest first."""
        # Names and subjects may hold anything but NUL.
        form = "--format=%H%x00%P%x00%an%x00%s"
        options = ("-z", f"--max-count={count}", form, "--no-show-signature", "--end-of-options", "HEAD", "--")
        fields = iter(self._run("log", *options).decode("utf-8", "replace").split("\0"))
        return [
            Commit(name, tuple(parents.split()), author, subject)
            for name, parents, author, subject in zip(fields, fields, fields, fields, strict=False)
        ]

    def changes(self, commit: Commit) -> list[FileChange]:
        """The files that a commit changed, against its first parent, sorted by path."""
        output = self._run(
            "diff-tree", "-r", "-z", "-M", "--root", "--raw", "--no-commit-id", "--no-abbrev", commit.name
        )
        return sorted(_changes(output.split(b"\0")), key=lambda change: change.path)

    def content(self, name: str) -> bytes:
        """A blob's bytes; empty for an empty name."""
        if not name:
            return b""
        return self._run("cat-file", "blob", name)

    def _run(self, *arguments: str) -> bytes:
        try:
            command = ("git", "-C", str(self._folder), *_OPTIONS, *arguments)
            done = subprocess.run(  # noqa: S603 - git, with arguments of our own
                command,
                capture_output=True,
                check=True,
                env=os.environ | _ENVIRONMENT,
                timeout=_SECONDS,
            )
        except FileNotFoundError as error:
            raise LogError("git is not installed; --git needs it.") from error
        except subprocess.TimeoutExpired as error:
            raise LogError(f"{self._folder}: git took longer than {_SECONDS:.0f} s.") from error
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode("utf-8", "replace").strip().splitlines()
            reason = said[0].removeprefix("fatal: ") if said else "no reason given"
            reason = "it has no commits" if "bad revision 'HEAD'" in reason else reason
            raise LogError(f"git cannot read {self._folder}: {reason}.") from error
        return done.stdout


def _changes(fields: Sequence[bytes]) -> Iterator[FileChange]:
    """Fields of the raw format: `:mode mode name name status`, then one path, or two of a rename."""
    at = 0
    while at < len(fields) and fields[at]:
        mode, other, before, after, status = fields[at].decode("ascii").lstrip(":").split()
        paths = 2 if status[0] in "RC" else 1
        path = fields[at + paths].decode("utf-8", "surrogateescape")
        at += 1 + paths
        modes = [each for each in (mode, other) if each.strip("0")]
        yield FileChange(
            path,
            status[0],
            before if before.strip("0") else "",
            after if after.strip("0") else "",
            all(each.startswith(_PLAIN_FILE) for each in modes),
        )


MAX_FILES: Final = 20
MAX_LINES: Final = 400
_LOCKS: Final = re.compile(
    r"(?:-lock\.(?:json|yaml)|\.lock|\.lockb|go\.sum|npm-shrinkwrap\.json|\.snap)$", re.IGNORECASE
)
_VENDORED: Final = frozenset({"vendor", "vendored", "third_party", "third-party", "node_modules"})
# What a formatter changes and nobody reads: white space, quotes, trailing commas and semicolons.
_FORM: Final = re.compile(r"[\s'\"`]+|,(?=\s*[)\]}])|;(?=\s*$)", re.MULTILINE)
_PROGRAM: Final = re.compile(r"\[bot\]|\bbot\b|dependabot|renovate", re.IGNORECASE)
_REVERT: Final = re.compile(r"^(?:Revert|Reapply) \"")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A commit that was not made into a log, and why."""

    commit: Commit
    reason: str


def read_git(folder: Path, commits: int = 50) -> Iterator[ReplayLog | LeftOut]:
    """A log, or the reason for none, for each of the newest commits, oldest first.

    Args:
        folder: of the repository.
        commits: how many to read.

    Raises:
        LogError: git cannot read the repository.
    """
    repository = Repository(folder)
    name = folder.resolve().name
    for commit in reversed(repository.commits(commits)):
        yield read_commit(repository, commit, name)


def read_commit(repository: Repository, commit: Commit, name: str = "git") -> ReplayLog | LeftOut:
    """The log of one commit."""
    refusal = _refusal(commit)
    if refusal:
        return LeftOut(commit, refusal)
    changes = repository.changes(commit)
    if len(changes) > MAX_FILES:
        return LeftOut(commit, f"huge: {len(changes)} files")
    problems: list[Problem] = []
    texts: dict[str, tuple[str, str]] = {}
    for entry, change in enumerate(changes):
        found = _text(repository, change)
        if isinstance(found, str):
            problems.append(Problem(entry, f"Calomel leaves {change.path} out: {found}."))
        else:
            texts[change.path] = found
    hunks = ordered(hunk for path, both in texts.items() for hunk in hunks_between(path, *both))
    lines = sum(len(hunk.old) + len(hunk.new) for hunk in hunks)
    if lines > MAX_LINES:
        return LeftOut(commit, f"huge: {lines} lines")
    if not hunks:
        reasons = {problem.message.rpartition(": ")[2].rstrip(".") for problem in problems}
        return LeftOut(commit, f"nothing typed by hand ({', '.join(sorted(reasons)) or 'no change'})")
    events, right = _events(commit, texts, hunks)
    metadata = {"commit": commit.name, "parent": "".join(commit.parents), "subject": commit.subject}
    checks = Checks(end_content_right=right)
    return ReplayLog(f"{name}@{commit.name[:10]}", "git", events, problems, checks, metadata)


def _refusal(commit: Commit) -> str:
    """Why a commit was not typed by a person; empty when it may have been."""
    if len(commit.parents) > 1:
        return "a merge"
    if _PROGRAM.search(commit.author):
        return f"written by a program ({commit.author})"
    return "a revert" if _REVERT.match(commit.subject) else ""


def _text(repository: Repository, change: FileChange) -> tuple[str, str] | str:
    """A file's texts before and after, or why no person typed its change."""
    refusal = _refusal_by_name(change)
    if refusal:
        return refusal
    try:
        before, after = (repository.content(name).decode("utf-8") for name in (change.before, change.after))
    except UnicodeDecodeError:
        return "no text"
    except LogError as error:
        return str(error).rstrip(".")
    if "\0" in before or "\0" in after:
        return "no text"
    if change.status != "A" and _FORM.sub("", before) == _FORM.sub("", after):
        return "only its form changed"
    return content_refusal(after) or (before, after)


def _refusal_by_name(change: FileChange) -> str:
    path = PurePosixPath(change.path)
    if change.status not in {"A", "M", "R"} or not change.plain:
        return {"D": "it was deleted", "T": "its type changed"}.get(change.status, "it is not a regular file")
    if _LOCKS.search(path.name):
        return "a lock file"
    if not _VENDORED.isdisjoint(path.parts[:-1]):
        return "vendored"
    if any("\udc80" <= character <= "\udcff" for character in change.path):
        return "its name is not text"
    return generated_by_name(Path(change.path), None) or ""


def _events(commit: Commit, texts: Mapping[str, tuple[str, str]], hunks: Sequence[Hunk]) -> tuple[list[Event], bool]:
    """The hunks typed one after the other; and whether the texts at the end are the commit's."""
    now = {path: before for path, (before, _) in texts.items()}
    # Per file: where hunks were applied already, and by how much the text grew there.
    made: dict[str, list[tuple[int, int]]] = {path: [] for path in texts}
    events: list[Event] = []
    time, focused = 0.0, ""
    for entry, hunk in enumerate(hunks):
        path = hunk.path
        if path != focused:
            time += FILE_SECONDS if focused else 0.0
            if not any(isinstance(event, Opened) and event.document == path for event in events):
                events.append(Opened(entry, time, path, language_of(path), now[path]))
            events.append(Focused(entry, time, path))
            focused = path
        time += HUNK_SECONDS
        start = hunk.start + sum(longer for line, longer in made[path] if line < hunk.line)
        seed = f"{commit.name}:{path}:{hunk.line}"
        for event in played(strokes(hunk, start, seed), entry, time, path):
            events.append(event)
            time = event.time
            if isinstance(event, Changed):
                now[path] = apply_edits(now[path], event.edits)
        longer = sum(map(len, hunk.new)) - sum(map(len, hunk.old))
        made[path].append((hunk.line, longer))
    return events, all(now[path] == after for path, (_, after) in texts.items())
