"""A repository's history as editing logs, one per commit: an approximation, to be read with care.

A commit does not record typing errors, abandoned attempts, order or pauses, so neither does its log. So suggestions
look better here than in a recording. Left out, each with its reason: merges, reverts, commits by programs, huge ones;
and in the others, files that nobody types: lock files, generated and vendored ones, those where only formatting
changed.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from calomel.replay.events import (
    Changed,
    Checks,
    Event,
    Focused,
    LogError,
    Opened,
    Problem,
    ReplayLog,
    apply_edits,
    language_of,
)
from calomel.replay.hunks import FILE_SECONDS, HUNK_SECONDS, Hunk, hunks_between, ordered, played, strokes
from calomel.workspace.privacy import content_refusal, generated_by_name

_PLAIN_FILE: Final = "100"
_NOTHING: Final = "0" * 40
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

    def commits(self, count: int, revision: str = "HEAD") -> list[Commit]:
        """The newest commits up to a revision, newest first."""
        form = "--format=%H%x00%P%x00%an%x00%s"
        output = self._run(
            "log", f"--max-count={count}", form, "--no-show-signature", "--end-of-options", revision, "--"
        )
        found = (line.split("\0") for line in output.decode("utf-8", "replace").splitlines())
        return [Commit(name, tuple(parents.split()), author, subject) for name, parents, author, subject in found]

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
            raise LogError("git is not there; the history of a repository is read with it.") from error
        except subprocess.TimeoutExpired as error:
            raise LogError(f"{self._folder}: git took longer than {_SECONDS:.0f} s.") from error
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode("utf-8", "replace").strip().splitlines()
            raise LogError(f"git cannot read {self._folder}: {said[0] if said else 'no reason given'}.") from error
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
            "" if before == _NOTHING else before,
            "" if after == _NOTHING else after,
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


def read_git(folder: Path, commits: int = 50, revision: str = "HEAD") -> Iterator[ReplayLog | LeftOut]:
    """A log, or the reason for none, for each of the newest commits, oldest first.

    Args:
        folder: of the repository.
        commits: how many to read.
        revision: the newest of them.

    Raises:
        LogError: git cannot read the repository.
    """
    repository = Repository(folder)
    name = folder.resolve().name
    for commit in reversed(repository.commits(commits, revision)):
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
        return LeftOut(commit, f"nothing that somebody typed ({', '.join(sorted(reasons)) or 'no change'})")
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
        return {"D": "it was deleted", "T": "its type changed"}.get(change.status, "it is not a plain file")
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
