"""Commits of a repository, read through git's plumbing: nothing of the repository's own configuration is run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from calomel.replay.events import LogError

_PLAIN_FILE: Final = "100"
_NOTHING: Final = "0" * 40
# No pager, no monitor, no hook, no fetching of what is not there.
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
    """One commit: its hash, those of its parents, who wrote it, and its first line."""

    name: str
    parents: tuple[str, ...]
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that a commit changed.

    Attributes:
        path: after it; of a removed file, before it.
        status: git's letter: `A`dded, `M`odified, `D`eleted, `R`enamed, `T`ype changed.
        before, after: names of the contents; empty when there is none.
        plain: both are files, no links and no submodules.
    """

    path: str
    status: str
    before: str
    after: str
    plain: bool


class Repository:
    """Reads commits. A context: it keeps a program of git running that reads contents.

    Raises:
        LogError: the folder is no repository, or git is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reader: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._run("rev-parse", "--git-dir")
        return self

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            # Ends with its input; it does not answer any more.
            self._reader.communicate()
            self._reader = None

    def commits(self, count: int, revision: str = "HEAD") -> list[Commit]:
        """The newest commits up to a revision, newest first."""
        form = "--format=%H%x00%P%x00%an%x00%s"
        output = self._run(
            "log", f"--max-count={count}", form, "--no-show-signature", "--end-of-options", revision, "--"
        )
        found = (line.split("\0") for line in output.decode("utf-8", "replace").splitlines())
        return [Commit(name, tuple(parents.split()), author, subject) for name, parents, author, subject in found]

    def changes(self, commit: Commit) -> list[FileChange]:
        """The files that a commit changed, against its first parent, in order of their paths."""
        output = self._run(
            "diff-tree", "-r", "-z", "-M", "--root", "--raw", "--no-commit-id", "--no-abbrev", commit.name
        )
        return sorted(_changes(output.split(b"\0")), key=lambda change: change.path)

    def content(self, name: str) -> bytes:
        """The bytes of a content; those of none are empty."""
        if not name:
            return b""
        if self._reader is None:
            self._reader = subprocess.Popen(  # noqa: S603 - git, with arguments of our own
                self._command("cat-file", "--batch"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | _ENVIRONMENT,
            )
        source, sink = self._reader.stdout, self._reader.stdin
        if source is None or sink is None:
            raise LogError("git gives no output.")
        sink.write(name.encode() + b"\n")
        sink.flush()
        head = source.readline().split()
        if len(head) != len(("name", "type", "size")):
            raise LogError(f"{self._folder}: the content {name} is not in this repository.")
        data = source.read(int(head[2]) + 1)
        return data[:-1]

    def _command(self, *arguments: str) -> Sequence[str]:
        return ("git", "-C", str(self._folder), *_OPTIONS, *arguments)

    def _run(self, *arguments: str) -> bytes:
        try:
            done = subprocess.run(  # noqa: S603 - git, with arguments of our own
                self._command(*arguments),
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
            raise LogError(
                f"{self._folder} cannot be read by git: {said[0] if said else 'no reason given'}."
            ) from error
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
